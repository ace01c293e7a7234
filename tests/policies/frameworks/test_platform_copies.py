"""What Argo writes into a variable once more is judged where the program gets it, and nowhere else."""

import json
from typing import Any

import pytest

from tests.policies.pods import container, denied, mutated, only_container, pod, policies

TIME_SLICING = policies("strategy: time-slicing")
VLLM = "vllm/vllm-openai:v0.11.0"
SETTING = "--gpu-memory-utilization=0.9"
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
        of_container("m", "--gpu-memory-utilization", "0.9", command=["/run.sh"]),
        of_container("m", "--gpu-memory-utilization", "0.9"),
        of_container("m", "--gpu-memory-utilization", "0.9", command=["timeout", "5", "vllm", "serve"]),
        of_container("m", env=[{"name": "XLA_PYTHON_CLIENT_MEM_FRACTION", "value": ".75"}]),
    ],
)
def test_a_copy_of_the_command_line_denies_nothing_at_either_look(on: dict[str, Any]) -> None:
    once = mutated(on, TIME_SLICING)
    assert mutated(once, TIME_SLICING) == once
    before, after = only_container(on)["env"][-1], only_container(once)["env"]
    assert before in after


COPY = {"container": {"args": [SETTING]}}
COMMAND = [*ARGO, "/run"]


@pytest.mark.parametrize(
    "on",
    [
        argo({"script": {"source": f"vllm serve m {SETTING}"}}, command=COMMAND),
        argo({"Script": {"source": f"vllm serve m {SETTING}"}}, command=COMMAND),
        argo({"inputs": {"artifacts": [{"raw": {"data": f"vllm {SETTING}"}}]}}, command=COMMAND),
        argo(COPY, command=[*ARGO, "sh", "-c", "run"]),
        argo(COPY, command=[*ARGO, "timeout", "5", "sh", "/run"]),
        argo(COPY, command=[*ARGO, "env", "-S", "dash -c 'env | dash'"]),
        argo(COPY, command=[*ARGO, "/bin/busybox", "run"]),
        argo(COPY, command=[*ARGO, "make", "-f", "/proc/self/environ"]),
        argo(COPY, command=["/run"]),
        argo(COPY, args=["/run"]),
        argo(COPY, command=COMMAND, args=["$(ARGO_TEMPLATE)"]),
        argo(COPY, command=COMMAND, env=[{"name": "MORE", "value": "x $(ARGO_TEMPLATE)"}]),
        argo(COPY, command=COMMAND, env=[{"name": "ARGO_TEMPLATE", "value": "{}"}]),
        argo(COPY, command=COMMAND, lifecycle={"postStart": {"exec": {"command": ["run", "$(ARGO_TEMPLATE)"]}}}),
        *(
            pod("0.2", container(command=COMMAND, env=[{"name": name, "value": value}]))
            for name, value in (
                ("ARGO_TEMPLATE", f"vllm serve m {SETTING} $A"),
                ("ARGO_TEMPLATE", f'["{SETTING}"]'),
                ("ARGO_TEMPLATE", '{"a":' * 5_000 + f'"{SETTING}"'),
                ("TEMPLATE", f'{{"a":"{SETTING}"}}'),
            )
        ),
    ],
)
def test_what_stands_nowhere_else_or_may_be_read_is_judged(on: dict[str, Any]) -> None:
    assert denied(on, TIME_SLICING).code == "MemoryArgumentAboveShare"


def test_what_the_container_itself_gets_is_judged() -> None:
    after = only_container(mutated(of_container("m", "--gpu-memory-utilization", "0.9"), TIME_SLICING))
    assert after["args"] == ["m", "--gpu-memory-utilization", "0.2"]


def test_a_name_that_is_repeated_thousands_of_times_costs_no_look_at_the_others_for_each() -> None:
    one = {"name": "ARGO_TEMPLATE", "value": json.dumps({"a": SETTING, "b": "A" * 100})}
    assert denied(pod("0.2", container(command=COMMAND, env=[one] * 4096)), TIME_SLICING).code == "PodTooLarge"


@pytest.mark.parametrize("name", ["script", "raw"])
def test_a_parameter_may_have_the_name_of_what_argo_writes_into_files(name: str) -> None:
    args = ["m", "--gpu-memory-utilization", "0.9"]
    written = {"inputs": {"parameters": [{"name": name, "value": "x"}]}, "container": {"args": args}}
    after = only_container(mutated(argo(written, command=[*ARGO, "vllm", "serve"], args=args), TIME_SLICING))
    assert after["args"] == ["m", "--gpu-memory-utilization", "0.2"]
