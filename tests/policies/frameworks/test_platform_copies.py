"""What Argo writes into a variable once more is judged where the program gets it, and nowhere else."""

import json
from typing import Any

import pytest

from tests.policies.pods import container, denied, mutated, only_container, pod, policies

TIME_SLICING = policies("strategy: time-slicing")
VLLM = "vllm/vllm-openai:v0.11.0"
ARGO = ["/var/run/argo/argoexec", "emissary", "--loglevel", "info", "--"]


def argo(template: dict[str, Any], **made: Any) -> dict[str, Any]:
    """A pod as Argo makes it of a template, for a program that gets what *made* says."""
    env = [*made.pop("env", ()), {"name": "ARGO_TEMPLATE", "value": json.dumps({"name": "t", **template})}]
    return pod("0.2", container(image=VLLM, env=env, **made))


def of_container(*args: str, **more: Any) -> dict[str, Any]:
    written = {"image": VLLM, "command": ["vllm", "serve"], "args": list(args), **more}
    made = written | {"command": [*ARGO, *written["command"]]}
    made.pop("image")
    return argo({"container": written}, **made)


@pytest.mark.parametrize(
    "on",
    [
        of_container("m", "--gpu-memory-utilization=$(GPU_SHARE_FRACTION)"),
        of_container("m", "--gpu-memory-utilization", "0.2"),
        of_container("m", "--gpu-memory-utilization", "0.9"),
        of_container("m", env=[{"name": "XLA_PYTHON_CLIENT_MEM_FRACTION", "value": ".75"}]),
    ],
)
def test_a_copy_of_the_command_line_denies_nothing_at_either_look(on: dict[str, Any]) -> None:
    once = mutated(on, TIME_SLICING)
    assert mutated(once, TIME_SLICING) == once
    before, after = only_container(on)["env"][-1], only_container(once)["env"]
    assert before in after


@pytest.mark.parametrize(
    "on",
    [
        argo({"script": {"source": "vllm serve m --gpu-memory-utilization 0.9"}}, command=[*ARGO, "bash", "/a"]),
        argo({"inputs": {"artifacts": [{"raw": {"data": "vllm --gpu-memory-utilization 0.9"}}]}}, command=["/run.sh"]),
        argo({"container": {"args": ["--gpu-memory-utilization=0.9"]}}, command=["sh", "-c", "run $ARGO_TEMPLATE"]),
        argo({"container": {"args": ["--gpu-memory-utilization=0.9"]}}, args=["$(ARGO_TEMPLATE)"]),
        argo(
            {"container": {"args": ["--gpu-memory-utilization=0.9"]}},
            env=[{"name": "MORE", "value": "x $(ARGO_TEMPLATE)"}],
        ),
        argo(
            {"container": {"args": ["--gpu-memory-utilization=0.9"]}},
            lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "run $ARGO_TEMPLATE"]}}},
        ),
        pod("0.2", container(env=[{"name": "ARGO_TEMPLATE", "value": "vllm serve m --gpu-memory-utilization 0.9 $A"}])),
        pod("0.2", container(env=[{"name": "ARGO_TEMPLATE", "value": '["--gpu-memory-utilization=0.9"]'}])),
        pod("0.2", container(env=[{"name": "TEMPLATE", "value": '{"a":"--gpu-memory-utilization=0.9"}'}])),
        pod(
            "0.2",
            container(env=[{"name": "ARGO_TEMPLATE", "value": '{"a":' * 5_000 + '"--gpu-memory-utilization=0.9"'}]),
        ),
    ],
)
def test_what_stands_nowhere_else_or_may_be_read_is_judged(on: dict[str, Any]) -> None:
    assert denied(on, TIME_SLICING).code == "MemoryArgumentAboveShare"


def test_what_the_container_itself_gets_is_judged() -> None:
    after = only_container(mutated(of_container("m", "--gpu-memory-utilization", "0.9"), TIME_SLICING))
    assert after["args"] == ["m", "--gpu-memory-utilization", "0.2"]
