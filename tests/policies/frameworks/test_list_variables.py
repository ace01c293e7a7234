"""A memory setting among others in one variable: the told share may stand there, and spaces mean nothing."""

from typing import Any

import pytest

from tests.policies.pods import container, denied, granted, mutated, only_container, pod, policies

TORCH, JAX = "pytorch/pytorch:2.10.0-cuda13.0-runtime", "nvcr.io/nvidia/jax:25.01-py3"
C, OPTIONS = "PYTORCH_CUDA_ALLOC_CONF", "JAX_PJRT_CLIENT_CREATE_OPTIONS"
M, TOLD = "per_process_memory_fraction:", "$GPU_SHARE_FRACTION"
MPS, SLICED = policies(), policies("strategy: time-slicing")
BOTH = pytest.mark.parametrize("by", [MPS, SLICED], ids=["mps", "time-slicing"])
OF_A_MAP = [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}]


def sets(value: str, name: str = C, *, by: str = "bash", image: str = TORCH) -> dict[str, Any]:
    text = f'export {name}="{value}"; python t.py'
    return pod("0.2", container(image=image, command=[by, "-c", text], env=OF_A_MAP))


def by_env(value: str) -> dict[str, Any]:
    return pod("0.2", container(image=TORCH, command=["env", f"{C}={value}", "python", "t.py"], env=OF_A_MAP))


@BOTH
@pytest.mark.parametrize(
    "on",
    [
        sets(f"{M}{TOLD}"),
        sets(f"{M}${{GPU_SHARE_FRACTION}}", by="zsh"),
        sets(f"{M}$(GPU_SHARE_FRACTION)"),
        sets(f"expandable_segments:True, {M}{TOLD}"),
        sets(f"{M}{TOLD},{M}0.1,expandable_segments:True"),
        sets(f"memory_fraction:{TOLD}", OPTIONS, image=JAX),
        sets(f"allocator:bfc;memory_fraction:{TOLD}", OPTIONS, image=JAX),
        sets(f"{M}{TOLD}", image="team/train:1"),
        by_env(f"expandable_segments:True,{M}$(GPU_SHARE_FRACTION)"),
        pod("0.2", container(image=TORCH, command=["sh", "-c", f"{C}={M}{TOLD} exec python t.py"])),
        pod("0.2", container(image=TORCH, command=["sh", "-c", f"{C}={M}{TOLD} 2>/x python t.py"])),
    ],
    ids=str,
)
def test_the_told_share_is_granted_without_a_word_among_other_settings(on: dict[str, Any], by: Any) -> None:
    assert granted(on, by).warnings == ()


UNREAD = [
    f"garbage$X,{M}{TOLD}",
    f"{M}{TOLD},a:$X",
    f"{M}{TOLD}$X",
    f"{M}$X{TOLD}",
    f"{M}{TOLD} $X",
    f"{M}{TOLD} e1",
    f"{M}{TOLD} 5",
    f"{M}0{TOLD}",
    f"a:{TOLD}",
    f"{M}0.1 $X",
    f"{M}{TOLD},{'a:1,' * 200}b:$X",
]
ABOVE = [
    f"{M}{TOLD},{M}1",
    f"{M}1,{M}{TOLD}",
    f"{M}{TOLD} x,{M}1",
    f"{M}{TOLD},{'a:1,' * 200}{M}1",
    f"{M}0.1 e1",
    f"{M}0.1 e 1",
    f"{M}0.2 99",
    "per_process_memory_ fraction:1",
]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize("value", [*UNREAD, *ABOVE])
def test_what_may_be_more_than_the_told_share_is_denied_under_time_slicing(value: str, shell: str) -> None:
    assert denied(sets(value, by=shell), SLICED).code == "MemoryArgumentAboveShare"


@pytest.mark.parametrize("value", [f"garbage$(X),{M}0.1", f"{M}$(GPU_SHARE_FRACTION)5", f"{M}0.1 e1", f"{M}0.1 $(X)"])
def test_it_is_in_a_word_of_env_as_well(value: str) -> None:
    assert denied(by_env(value), SLICED).code == "MemoryArgumentAboveShare"


def test_a_setting_above_the_share_is_lowered_together_with_the_told_one_beside_it() -> None:
    after = only_container(mutated(by_env(f"{M}1,a:1,{M}$(GPU_SHARE_FRACTION)"), SLICED))
    assert after["command"][1] == f"{C}={M}0.2,a:1,{M}0.2"
    assert denied(by_env(f"{M}1,a:$(GPU_SHARE_FRACTION)"), SLICED).code == "MemoryArgumentAboveShare"


@pytest.mark.parametrize("on", [sets(f"{M}$X"), sets("$X", "XLA_PYTHON_CLIENT_MEM_FRACTION", image=JAX)], ids=str)
def test_what_a_text_says_twice_is_one_warning(on: dict[str, Any]) -> None:
    (warning,) = granted(on, MPS).warnings
    assert "which cannot be read; MPS limits it" in warning


def test_the_denial_says_what_may_stand_there() -> None:
    assert denied(sets(f"{M}$X"), SLICED).message.endswith(
        "Write all of it out, or its fraction as $GPU_SHARE_FRACTION."
    )


def in_env(value: str, image: str = TORCH) -> dict[str, Any]:
    return pod("0.2", container(image=image, env=[{"name": C, "value": value}]))


SIGNS = [  # for PyTorch, which looks at none of them, each sets the fraction to 1
    f"{M}0.1,per_process_memory_fraction,1",
    f"{M}0.1,max_split_size_mb:100:{M}1",
    f"{M}0.1,roundup_power2_divisions:[256:1]:{M}1",
    "per_process_memory_fraction,1",
    "per_process_memory_fraction[1",
    "expandable_segments:True]per_process_memory_fraction]1",
]


@pytest.mark.parametrize("value", SIGNS)
@pytest.mark.parametrize("image", [TORCH, "team/train:1"])
def test_a_setting_is_found_whatever_sign_stands_around_it(value: str, image: str) -> None:
    after = only_container(mutated(in_env(value, image), SLICED))
    (written,) = (one["value"] for one in after["env"] if one["name"] == C)
    assert written.count(f"{M}0.2") == 1
    assert "fraction,1" not in written
    assert "fraction:1" not in written
    assert denied(sets(value, image=image), SLICED).code == "MemoryArgumentAboveShare"


@pytest.mark.parametrize("value", ["backend,cudaMallocAsync", f"{M}0.1,a:backend:cudaMallocAsync"])
def test_another_backend_is_found_whatever_sign_stands_around_it(value: str) -> None:
    for on in (in_env(value), by_env(value), sets(value)):
        assert "takes memory whatever its share is" in denied(on, SLICED).message


@pytest.mark.parametrize("space", ["\u00a0", "\u2003", "\x1c", "\x85"])
def test_a_space_that_c_knows_as_none_ends_the_number(space: str) -> None:
    value = f"{M}1{space}e-1"
    after = only_container(mutated(in_env(value), SLICED))
    assert [one["value"] for one in after["env"] if one["name"] == C] == [f"{M}0.2"]
    assert denied(sets(value), SLICED).code == "MemoryArgumentAboveShare"


JOINED = ["e1", "9", ",1", "ory_fraction:1", "$X"]


@pytest.mark.parametrize("joined", JOINED)
@pytest.mark.parametrize("first", [f"{M}{TOLD}", f"{M}0.1", "per_process_memory_fraction"])
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_what_is_joined_to_a_list_and_may_go_on_a_setting_is_denied(first: str, joined: str, shell: str) -> None:
    text = f'export {C}="{first}"; {C}+="{joined}"; python t.py'
    on = pod("0.2", container(image=TORCH, command=[shell, "-c", text], env=OF_A_MAP))
    assert denied(on, SLICED).code == "MemoryArgumentAboveShare"


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_settings_that_are_joined_to_a_list_are_granted(shell: str) -> None:
    text = f'export {C}="{M}{TOLD}"; {C}+=",expandable_segments:True"; python t.py'
    assert granted(pod("0.2", container(image=TORCH, command=[shell, "-c", text])), SLICED).warnings == ()


LIST = "roundup_power2_divisions:[256:1,512:2,>:8]"


@pytest.mark.parametrize(
    ("value", "lowered"),
    [
        (f"{LIST},{M}0.9", f"{LIST},{M}0.2"),
        (f"{LIST},{M}0.9,expandable_segments:True", f"{LIST},{M}0.2,expandable_segments:True"),
        (f"{M}0.9,{LIST}", f"{M}0.2,{LIST}"),
        (f"a:b:{M}1,{LIST}", f"a:b,{M}0.2,{LIST}"),
        ("per_process_memory_fraction,1," + LIST, f"{M}0.2,{LIST}"),
    ],
)
def test_what_stands_beside_a_setting_that_is_lowered_stays_as_it_is(value: str, lowered: str) -> None:
    after = only_container(mutated(in_env(value), SLICED))
    assert [one["value"] for one in after["env"] if one["name"] == C] == [lowered]


@pytest.mark.parametrize("value", [f"a:b:{M}1:{LIST}", f"{M}1]{LIST}", f"{M}1:b:2,a:c"])
def test_a_setting_behind_which_another_stands_in_the_same_item_is_denied(value: str) -> None:
    """Whoever wrote the share in its place would write it over the other one, too."""
    assert denied(in_env(value), SLICED).code == "MemoryArgumentAboveShare"


BEHIND = [f"{LIST},{M}0.9", f"{LIST}, {M}0.9", f"{M}0.1,{LIST},{M}0.9", f"{LIST},{M}$X", f"[1:2, > : 8],{M}0.9"]
BEHIND += [f"a:128{sign},{M}0.9" for sign in ";|&<>\x7f"]


@pytest.mark.parametrize("value", BEHIND)
@pytest.mark.parametrize("quote", "'\"")
def test_what_ends_a_command_ends_no_list_in_quotes(value: str, quote: str) -> None:
    value = value.replace("$X", "$X" if quote == '"' else "0.9")
    for text in (f"export {C}={quote}{value}{quote}; python t.py", f"{C}+={quote},{value}{quote} python t.py"):
        on = pod("0.2", container(image=TORCH, command=["bash", "-c", text], env=OF_A_MAP))
        assert denied(on, SLICED).code == "MemoryArgumentAboveShare"


@pytest.mark.parametrize(
    "text",
    [
        f"import os; os.environ['{C}'] = '{LIST},{M}0.9'; import train",
        f'{{"env": [{{"name": "{C}", "value": "{LIST},{M}0.9"}}]}}',
    ],
)
def test_nor_does_it_in_a_text_that_no_shell_runs(text: str) -> None:
    by_word = pod("0.2", container(image=TORCH, command=["python", "-c", text]))
    by_variable = pod("0.2", container(image=TORCH, env=[{"name": "SPEC", "value": text}]))
    assert denied(by_word, SLICED).code == denied(by_variable, SLICED).code == "MemoryArgumentAboveShare"


@BOTH
@pytest.mark.parametrize(
    "value", [f"{M}{TOLD},{LIST}", f"{LIST}, {M}{TOLD}", f"expandable_segments:True,{LIST},{M}0.1"]
)
def test_a_list_of_divisions_is_granted_without_a_word(value: str, by: Any) -> None:
    assert granted(sets(value), by).warnings == ()


@BOTH
@pytest.mark.parametrize(
    ("value", "joined"),
    [
        (" ", f"{M}0.2"),
        ("a:1, ", f"a:1,{M}0.2"),
        ("a:1,\n", f"a:1,{M}0.2"),
        ("a:1,\nb:2,\n", f"a:1,\nb:2,{M}0.2"),
    ],
)
def test_the_share_stands_behind_no_item_of_spaces_alone(value: str, joined: str, by: Any) -> None:
    after = only_container(mutated(in_env(value), by))
    assert [one["value"] for one in after["env"] if one["name"] == C] == [joined]


@pytest.mark.parametrize(
    ("value", "lowered"),
    [
        (f"a:[512:2]{M}0.9", f"a:[512:2],{M}0.2"),
        (f"a:1:{M}0.9", f"a:1,{M}0.2"),
        (f";{M}0.9", f",{M}0.2"),
        (f"{M}:0.9", f"{M}0.2"),
    ],
)
def test_a_setting_behind_any_sign_is_lowered_and_a_bracket_before_it_stays(value: str, lowered: str) -> None:
    after = only_container(mutated(in_env(value), MPS))
    assert [one["value"] for one in after["env"] if one["name"] == C] == [lowered]
