"""The variable that tells a program its share, where its command line sets variables, too."""

from typing import Any

import pytest

from policies.frameworks.own_variables import LONGEST_LOWERED
from policies.grant import Denied
from tests.policies.pods import container, decided, granted, mutated, only_container, pod, policies

TORCH = "pytorch/pytorch:2.10.0-cuda13.0-runtime"
OLD_TORCH = "pytorch/pytorch:2.9.0-cuda13.0-runtime"
JAX = "nvcr.io/nvidia/jax:25.01-py3"
C, NEW = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"
X, CLIENT = "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"
SHARE = "per_process_memory_fraction:0.2"
EXPANDABLE = "expandable_segments:True"
MPS, SLICED = policies(), policies("strategy: time-slicing")
BOTH = pytest.mark.parametrize("by", [MPS, SLICED], ids=["mps", "time-slicing"])


def bash(text: str, image: str = TORCH, **fields: Any) -> dict[str, Any]:
    return pod("0.2", container(image=image, command=["bash", "-c", text], **fields))


def words(*command: str, **fields: Any) -> dict[str, Any]:
    return pod("0.2", container(image=TORCH, command=list(command), **fields))


REPLACING = [
    bash(f"export {C}={EXPANDABLE}; python t.py"),
    bash(f"{C}={EXPANDABLE} python t.py"),
    bash(f"export {NEW}={EXPANDABLE}; python t.py"),
    bash(f"if x; then {C}=; fi; python t.py"),
    bash(f"export {C}={EXPANDABLE}; python t.py", env=[{"name": C, "value": SHARE}]),
    bash(f"export {NEW}={EXPANDABLE}; python t.py", env=[{"name": C, "value": SHARE}]),
    words("env", f"{C}={EXPANDABLE}", "python", "t.py"),
    words("mpirun", "-x", f"{C}={EXPANDABLE}", "python", "t.py"),
    words("zsh", "-c", f"export {C}={EXPANDABLE}; python t.py"),
    words("fish", "-c", f"set -gx {C} {EXPANDABLE}; python t.py"),
    words("csh", "-c", f"setenv {C} {EXPANDABLE}; python t.py"),
    bash(f"{C}={EXPANDABLE}\r\npython t.py\r\n"),
]
KEEPING = [
    bash(f"export {C}=${{{C}:-{EXPANDABLE}}}; python t.py"),
    bash(f"export {C}=${C},{EXPANDABLE}; python t.py"),
    bash(f"export {C}={EXPANDABLE},{SHARE}; python t.py"),
    bash(f"export {NEW}={EXPANDABLE},per_process_memory_fraction:0.1; python t.py"),
    bash(f"export {C}={EXPANDABLE}; python t.py", OLD_TORCH),
    bash(f'echo "{C}=${C}"; python t.py'),
    bash(f'echo "{X}=${X}"; python t.py', JAX),
    bash(f"export {X}=${{{X}:-0.1}}; python t.py", JAX),
    words("python", "t.py", f"--conf=$({C})"),
    words("zsh", "-c", f"{C}={SHARE},{EXPANDABLE} python t.py"),
    words("fish", "-c", f"set -gx {C} {EXPANDABLE},{SHARE}; python t.py"),
    words("csh", "-c", f"printenv {C} ; python t.py"),
    words("zsh", "-c", f"env -u {C} -u {NEW} echo x; python t.py"),
    words("mpirun", "-x", "A", "-x", C, "python", "t.py"),
    words("env", "-u", NEW, "python", "t.py"),
    words("echo", f"{C} is {EXPANDABLE} at times"),
]


@pytest.mark.parametrize("on", REPLACING, ids=str)
def test_other_settings_in_place_of_the_share_are_denied_under_time_slicing_with_what_to_add(on: Any) -> None:
    decision = decided(on, SLICED)
    assert isinstance(decision, Denied)
    assert "without the share" in decision.deny.message
    assert decision.deny.message.endswith(f"Add {SHARE} to it.")


@pytest.mark.parametrize("on", REPLACING, ids=str)
def test_under_mps_they_are_a_warning(on: Any) -> None:
    (warning,) = granted(on, MPS).warnings
    assert warning.endswith("without the share; MPS limits it")


@BOTH
@pytest.mark.parametrize("on", KEEPING, ids=str)
def test_what_keeps_the_share_is_granted_without_a_word(on: Any, by: Any) -> None:
    assert [one for one in granted(on, by).warnings if "MPS limits" in one or "cannot" in one] == []


@BOTH
@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"export {CLIENT}=0.1; python t.py", CLIENT),
        (f"unset {X}; export {CLIENT}=0.1; python t.py", CLIENT),
        (f"env -i {CLIENT}=0.1 python t.py", CLIENT),
        (f': "${{{CLIENT}:=0.1}}"; export {CLIENT}; python t.py', CLIENT),
        (f'echo "{CLIENT} is not set"; python t.py', X),
        (f"MY_{CLIENT}=1 python t.py", X),
        ("python t.py", X),
    ],
)
def test_the_share_is_told_by_the_name_that_the_text_sets_since_jax_stops_at_two(text: str, name: str, by: Any) -> None:
    on = bash(text, JAX)
    assert granted(on, by).warnings == ()
    other = CLIENT if name == X else X
    assert only_container(mutated(on, by))["env"] == [{"name": name, "value": "0.2"}, {"name": other, "value": ""}]


@BOTH
def test_pytorch_is_told_by_the_name_that_the_text_sets_as_well(by: Any) -> None:
    on = bash(f"export {NEW}=${NEW},{EXPANDABLE}; python t.py")
    assert only_container(mutated(on, by))["env"] == [{"name": NEW, "value": SHARE}]


@BOTH
@pytest.mark.parametrize(
    "on", [words("python", "t.py", "PYTORCH_HIP_ALLOC_CONF=a"), bash("python t.py # PYTORCH_HIP_ALLOC_CONF=")]
)
def test_pytorch_is_not_told_by_a_name_that_builds_for_nvidia_do_not_read(on: Any, by: Any) -> None:
    assert only_container(mutated(on, by))["env"] == [{"name": C, "value": SHARE}]


@BOTH
@pytest.mark.parametrize(
    "command",
    [
        ["mpiexec", "-genv", CLIENT, "0.1", "python", "t.py"],
        ["env", "$(E)", "python", "t.py"],
        ["csh", "-c", f"setenv {CLIENT} 0.1; python t.py"],
        ["fish", "-c", f"set -gx {CLIENT}  0.1; python t.py"],
    ],
)
def test_a_name_counts_as_set_however_the_words_do_it(command: list[str], by: Any) -> None:
    on = pod("0.2", container(image=JAX, command=command, env=[{"name": "E", "value": f"{CLIENT}=0.1"}]))
    assert [one["name"] for one in only_container(mutated(on, by))["env"]] == ["E", CLIENT, X]


@BOTH
def test_each_name_that_the_container_sets_has_the_share_since_versions_believe_different_ones(by: Any) -> None:
    env = [{"name": name, "value": EXPANDABLE} for name in (C, NEW)]
    on = words("python", "t.py", env=env)
    assert granted(on, by).warnings == ()
    assert [one["value"] for one in only_container(mutated(on, by))["env"]] == [f"{EXPANDABLE},{SHARE}"] * 2


@pytest.mark.parametrize("names", [(C, NEW), (NEW, C)])
def test_a_share_under_one_name_alone_is_denied_under_time_slicing(names: tuple[str, str]) -> None:
    env = [{"name": name, "value": value} for name, value in zip(names, (SHARE, EXPANDABLE), strict=True)]
    decision = decided(words("python", "t.py", env=env), SLICED)
    assert isinstance(decision, Denied)
    assert f"{names[1]} is set to " in decision.deny.message
    assert decision.deny.message.endswith(f"Add {SHARE} to it.")
    (warning,) = granted(words("python", "t.py", env=env), MPS).warnings
    assert warning.endswith("without the share; MPS limits it")


@BOTH
def test_settings_of_an_image_that_is_told_no_share_are_left_alone(by: Any) -> None:
    on = pod("0.2", container(image="x/y", command=["python", "t.py"], env=[{"name": C, "value": EXPANDABLE}]))
    assert only_container(mutated(on, by))["env"] == [{"name": C, "value": EXPANDABLE}]


@BOTH
@pytest.mark.parametrize("length", [LONGEST_LOWERED - len(SHARE) - 1, LONGEST_LOWERED - len(SHARE), LONGEST_LOWERED])
def test_a_value_is_made_no_longer_than_what_the_next_review_reads(length: int, by: Any) -> None:
    on = words("python", "t.py", env=[{"name": C, "value": "a" * length}])
    after = mutated(on, by)
    (variable,) = only_container(after)["env"]
    assert (SHARE in variable["value"]) == (length + len(SHARE) < LONGEST_LOWERED)
    assert mutated(after, by) == after


@BOTH
def test_a_value_that_cannot_be_lowered_within_that_is_denied(by: Any) -> None:
    short = "per_process_memory_fraction:1"
    env = [{"name": C, "value": f"{'a' * (LONGEST_LOWERED - len(short) - 1)},{short}"}]
    decision = decided(words("python", "t.py", env=env), by)
    assert isinstance(decision, Denied)
    assert decision.deny.code == "MemoryArgumentAboveShare"
