"""A setting that is made of another one is judged by what that is after it was lowered, filled or added to."""

from typing import Any

import pytest

from policies.grant import Denied, Grant
from tests.policies.pods import container, decided, environment, granted, mutated, only_container, pod, policies

JAX, CUPY = "XLA_PYTHON_CLIENT_MEM_FRACTION", "CUPY_GPU_MEMORY_LIMIT"
TORCH = "PYTORCH_CUDA_ALLOC_CONF"
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


BASE = ("BASE", "expandable_segments:True")


def torch(text: str, *env: tuple[str, str]) -> dict[str, Any]:
    variables = [{"name": name, "value": value} for name, value in env]
    return pod("0.2", container(image="pytorch/pytorch:2.10.0", command=["bash", "-c", text], env=variables))


@EACH
@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"mpirun -np 1 -x {TORCH}=${TORCH} python t.py", "$(BASE),max_split_size_mb:256"),
        (f'export {TORCH}="${TORCH},garbage_collection_threshold:0.8"; python t.py', "$(BASE)"),
        (f"export {TORCH}=${{{TORCH}:-x:1}}; exec python t.py", "$(BASE)"),
        (f"echo {TORCH}=$({TORCH}); exec torchrun t.py", "$(BASE)"),
    ],
)
def test_a_list_that_is_made_of_another_variable_is_read_as_the_kubelet_expands_it(
    text: str, value: str, by: Any
) -> None:
    on = torch(text, BASE, (TORCH, value))
    assert granted(on, by).warnings == ()
    after = mutated(on, by)
    assert environment(only_container(after))[TORCH] == f"{value},per_process_memory_fraction:0.2"
    assert mutated(after, by) == after


@EACH
@pytest.mark.parametrize("rest", ["", " m", " x"])
def test_an_option_that_a_list_becomes_is_denied(rest: str, by: Any) -> None:
    on = torch(f"vllm serve m ${TORCH}", ("A", "--gpu-memory-"), (TORCH, f"$(A)utilization=0.9{rest}"))
    decision = decided(on, by)
    assert isinstance(decision, Denied)
    assert '--gpu-memory-utilization to "0.9' in decision.deny.message


@EACH
@pytest.mark.parametrize("held", [".9", ""])
@pytest.mark.parametrize(
    "text",
    [
        f'X=EM_FRACTION; eval "{CUPY}=9\\${JAX[:-11]}$X% python t.py"',
        f"{CUPY}=9${{$(X)EM_FRACTION}}% python t.py",
    ],
)
def test_a_changed_variable_counts_where_its_name_is_made_up(text: str, held: str, by: Any) -> None:
    decision = decided(of(("X", JAX[:-11]), (JAX, held), command=["bash", "-c", text]), by)
    assert isinstance(decision, Denied)
    assert '"90.2%", more than the share' in decision.deny.message


@EACH
def test_a_variable_that_is_added_stands_behind_all_others_and_is_in_none_of_them(by: Any) -> None:
    on = of((CUPY, f"1$({JAX})%"), command=["env", f"CUDA_MEMORY_FRACTION=0$({JAX})", "python", "t.py"])
    (warning,) = granted(on, by).warnings
    assert warning == f'"main": {CUPY} was "1$({JAX})%", which the kubelet does not expand there: replaced by the share'
    after = mutated(on, by)
    assert only_container(after)["command"][1] == f"CUDA_MEMORY_FRACTION=0$({JAX})"
    assert environment(only_container(after))[CUPY] == "20%"


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
