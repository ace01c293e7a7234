"""A setting that is made of another one is judged by what that is after it was lowered, filled or added to."""

from typing import Any

import pytest

from policies.grant import Denied, Grant
from tests.policies.pods import container, decided, environment, mutated, only_container, pod, policies

JAX, CUPY = "XLA_PYTHON_CLIENT_MEM_FRACTION", "CUPY_GPU_MEMORY_LIMIT"
MADE = f"9$({JAX})%"
SLICED = policies("strategy: time-slicing")
TRUSTING = policies("strategy: time-slicing\nframeworks: {unread: warn}")
EACH = pytest.mark.parametrize("by", [policies(), SLICED, TRUSTING], ids=["mps", "time-slicing", "unread: warn"])


def of(*env: tuple[str, str], command: list[str] | None = None) -> dict[str, Any]:
    fields: dict[str, Any] = {} if command is None else {"command": command}
    variables = [{"name": name, "value": value} for name, value in env]
    return pod("0.2", container(image="nvcr.io/nvidia/jax:1", env=variables, **fields))


@EACH
@pytest.mark.parametrize("held", [".9", ""])  # 9.9 or 9 % before, and 90.2 % by the share
@pytest.mark.parametrize(
    "on",
    [
        lambda held: of((JAX, held), (CUPY, MADE)),
        lambda held: of((JAX, held), ("X", MADE), (CUPY, "$(X)")),
        lambda held: of((JAX, held), command=["bash", "-c", f"{CUPY}=9${{{JAX}}}% python t.py"]),
        lambda held: of((JAX, held), (CUPY, "95%"), (CUPY, MADE)),
    ],
)
def test_what_becomes_more_than_the_share_is_denied(on: Any, held: str, by: Any) -> None:
    decision = decided(on(held), by)
    assert isinstance(decision, Denied)
    assert {one.code for one in decision.reasons} == {"MemoryArgumentAboveShare"}


@EACH
@pytest.mark.parametrize("held", [".9", ""])
@pytest.mark.parametrize("word", [f"{CUPY}={MADE}", f"{CUPY}=$(X)"])
def test_a_word_that_becomes_more_than_the_share_is_lowered(word: str, held: str, by: Any) -> None:
    after = mutated(of((JAX, held), ("X", MADE), command=["env", word, "python", "t.py"]), by)
    assert only_container(after)["command"][1] == f"{CUPY}=20%"
    assert mutated(after, by) == after


@EACH
@pytest.mark.parametrize(
    "command",
    [
        ["env", f"{JAX}=0.9", "python", "t.py"],
        ["mpiexec", "-genv", JAX, "0.9", "python", "t.py"],
        ["env", f"XLA_CLIENT_MEM_FRACTION=$({JAX})", "python", "t.py", "--gpu-memory-utilization=0.9"],
    ],
)
def test_words_and_variables_are_lowered_together(command: list[str], by: Any) -> None:
    after = mutated(of((JAX, ".9"), ("LABEL", f"jax-$({JAX})"), command=command), by)
    assert environment(only_container(after))[JAX] == "0.2"
    assert not any("0.9" in word for word in only_container(after)["command"])
    assert mutated(after, by) == after


def test_a_long_script_is_read_once() -> None:
    line = 'if [ -n "$MODEL_{0}" ]; then mkdir -p "/m/$MODEL_{0}" && cp -r "/s/$MODEL_{0}" /m; fi\n'
    text = "".join(line.format(number) for number in range(40)) + f'echo "${JAX}"\nexec python t.py'
    for held in ("0.1", ".9", ""):
        assert isinstance(decided(of((JAX, held), command=["bash", "-c", text]), SLICED), Grant)


def test_a_warning_of_one_setting_hides_none_of_another() -> None:
    text = "MXNET_GPU_MEM_POOL_RESERVE=$(cat /x) python t.py"
    assert isinstance(decided(of((JAX, ".9"), (CUPY, MADE), command=["sh", "-c", text]), TRUSTING), Denied)


def test_a_cap_that_a_change_takes_away_is_missed() -> None:
    own = [
        ("OPTION_GPU_MEMORY_UTILIZATION", "0.6,per_process_memory_fraction:0.1"),
        ("PYTORCH_CUDA_ALLOC_CONF", "garbage_collection_threshold:$(OPTION_GPU_MEMORY_UTILIZATION)"),
    ]
    image = "pytorch/pytorch:2.10.0-cuda13.0-runtime"
    on = pod("0.2", container(image=image, env=[{"name": name, "value": value} for name, value in own]))
    assert isinstance(decided(on, SLICED), Denied)


@EACH
def test_a_list_to_which_the_share_is_added_counts_as_it_is_then(by: Any) -> None:
    own = [("PYTORCH_CUDA_ALLOC_CONF", "backend:native"), ("PYTORCH_ALLOC_CONF", "$(PYTORCH_CUDA_ALLOC_CONF)9")]
    one = container(image="pytorch/pytorch:2.10.0-cuda13.0-runtime", env=[{"name": a, "value": b} for a, b in own])
    after = decided(pod("0.2", one), by)
    assert isinstance(after, Denied) or all(
        "0.29" not in value for value in environment(only_container(mutated(pod("0.2", one), by))).values()
    )


@EACH
@pytest.mark.parametrize("held", [".9", "0.1"])
@pytest.mark.parametrize(
    ("env", "command"),
    [
        ([("XLA_CLIENT_MEM_FRACTION", f"$({JAX})")], ["python", "t.py"]),
        ([("LABEL", f"jax-$({JAX})")], ["python", "t.py", f"--name=$({JAX})"]),
        ([], ["bash", "-c", f"echo ${JAX}; exec python t.py"]),
        ([("VLLM_FRACTION", f"$({JAX})")], ["python", "t.py", "--gpu-memory-utilization=$(VLLM_FRACTION)"]),
    ],
)
def test_what_follows_the_share_is_granted_and_stays_so(
    env: list[tuple[str, str]], command: list[str], held: str, by: Any
) -> None:
    after = mutated(of((JAX, held), *env, command=command), by)
    assert mutated(after, by) == after
