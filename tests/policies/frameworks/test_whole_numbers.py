"""A whole number that cannot be read, behind an abbreviation: as one that is written out, it is no fraction below 1."""

from typing import Any

import pytest

from tests.policies.pods import container, denied, granted, pod, policies

OWN = "registry.example/server:1"
MPS, SLICED = policies(), policies("strategy: time-slicing")
ENV: list[dict[str, Any]] = [
    {"name": "MEM", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}},
    {"name": "MAP", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}},
    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
]


def server(*words: str, image: str = OWN) -> dict[str, Any]:
    return pod("0.2", container(image=image, command=["python", "server.py", *words], env=ENV))


@pytest.mark.parametrize("by", [MPS, SLICED], ids=["mps", "time-slicing"])
@pytest.mark.parametrize(
    "words",
    [
        ["--gpu-memory=$(GPU_SHARE_MEMORY_MIB)"],
        ["--gpu-mem", "$(GPU_SHARE_MEMORY_MIB)"],
        ["--mem=$(GPU_SHARE_MEMORY_MIB)Mi"],
        ["--mem=$(MEM)"],
        ["--mem", "$(MEM)"],
    ],
)
def test_it_is_another_option_where_nobody_knows_the_program(words: list[str], by: Any) -> None:
    assert granted(server(*words), by).warnings == ()


@pytest.mark.parametrize(
    "on",
    [
        server("--mem=0.$(MEM)"),
        server("--mem=$(MEM)e-1"),
        server("--mem=$(MEM)$(MEM)"),
        server("--mem=$(MAP)"),
        server("--mem=$(NODE)"),
        server("--kv-cache-mem=$(MEM)"),
        server("--gpu-memory-utilization=$(MEM)"),
        server("--mem=$(MEM)", image="registry.example/sglang-next:1"),
        server("--gpu-mem=$(MEM)", image="vllm/vllm-openai:v0.11.0"),
        server("-c", "./vllm", "--gpu-mem", "$(GPU_SHARE_MEMORY_MIB)"),
        pod("0.2", container(image=OWN, command=["ksh", "-c", "./server --gpu-mem=$((9 / 10.))"])),
        pod("0.2", container(image=OWN, command=["sh", "-c", "PATH=/x:$PATH; ./server --gpu-mem=$(nproc)"])),
    ],
    ids=lambda on: " ".join(on["spec"]["containers"][0]["command"]),
)
def test_what_may_be_a_fraction_or_a_frameworks_own_is_denied_under_time_slicing(on: dict[str, Any]) -> None:
    assert denied(on, SLICED).code == "MemoryArgumentAboveShare"
