"""A program that stops at two names of one setting: it gets a value in one of them, whatever its image says."""

from typing import Any

import pytest

from policies.errors import PolicyError
from policies.grant import Denied, Grant
from tests.policies.pods import container, decided, environment, granted, mutated, only_container, pod, policies

IMAGE = "nvcr.io/nvidia/jax:25.01-py3"
OLD, NEW = "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"
SLICED = policies("strategy: time-slicing")
DENYING = policies("frameworks: {onConflict: deny}")
BOTH = pytest.mark.parametrize("by", [policies(), SLICED], ids=["mps", "time-slicing"])


def jax(*env: tuple[str, str], image: str = IMAGE, **fields: Any) -> dict[str, Any]:
    if env:
        fields["env"] = [{"name": name, "value": value} for name, value in env]
    return pod("0.2", container(image=image, **fields))


def fraction(env: dict[str, str]) -> str:
    """What jaxlib takes, by `generate_pjrt_gpu_plugin_options`; versions up to 0.4.30 read the old name alone."""
    old, new = (env.get(name, "").replace("$(E)", env.get("E", "")) for name in (OLD, NEW))
    assert not (old and new), "JAX does not start"
    return old or new or "0.75"


def by_python(code: str) -> dict[str, Any]:
    return jax(command=["python", "-c", code])


def by_bash(text: str) -> dict[str, Any]:
    return jax(command=["bash", "-c", text])


@BOTH
@pytest.mark.parametrize("of_image", [{}, {NEW: "0.95"}, {OLD: "0.95"}])
def test_an_image_that_sets_either_name_starts_with_the_share(of_image: dict[str, str], by: Any) -> None:
    made = environment(only_container(mutated(jax(), by)))
    assert made == {OLD: "0.2", NEW: ""}
    assert fraction(of_image | made) == "0.2"


@BOTH
def test_a_second_call_finds_the_empty_one_as_the_api_server_keeps_it_and_changes_nothing(by: Any) -> None:
    after = mutated(jax(command=["bash", "-c", f"unset {NEW}; python t.py"]), by)
    assert only_container(after)["env"].pop() == {"name": NEW, "value": ""}
    only_container(after)["env"].append({"name": NEW})
    assert mutated(after, by) == after


@BOTH
@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ([(NEW, "0.1"), (OLD, "")], "0.1"),
        ([(OLD, "0.1"), (NEW, "")], "0.1"),
        ([("E", ""), (OLD, "$(E)"), (NEW, "0.1")], "0.1"),
        ([(OLD, ""), (OLD, "0.1")], "0.1"),
        ([(NEW, "")], "0.2"),
        ([(OLD, "")], "0.2"),
        ([(OLD, ""), (NEW, "")], "0.2"),
        ([(OLD, "0.1"), (OLD, "")], "0.2"),
        ([(OLD, "0.9"), (OLD, "")], "0.2"),
        ([(OLD, ""), (OLD, "")], "0.2"),
        ([(NEW, "0.1"), (OLD, ""), (NEW, "")], "0.2"),
        ([(NEW, "0.9"), (OLD, "")], "0.2"),
        ([("E", "0.9"), (OLD, ""), (NEW, "$(E)")], "0.2"),
    ],
)
def test_a_name_with_nothing_in_it_is_none_beside_the_other(env: list[tuple[str, str]], expected: str, by: Any) -> None:
    after = mutated(jax(*env), by)
    assert fraction(environment(only_container(after))) == expected
    assert mutated(after, by) == after


@pytest.mark.parametrize("env", [[(NEW, "")], [(OLD, "")], [(OLD, "0.1"), (NEW, "")], [(NEW, "0.1"), (OLD, "")]])
def test_a_name_with_nothing_in_it_is_no_conflict(env: list[tuple[str, str]]) -> None:
    assert granted(jax(*env), DENYING).warnings == ()


@BOTH
@pytest.mark.parametrize("text", [f"unset {NEW}; export {OLD}=0.1; python t.py", f"env -u {NEW} python t.py"])
def test_the_name_with_nothing_in_it_may_be_taken_from_the_program(text: str, by: Any) -> None:
    after = mutated(by_bash(text), by)
    assert environment(only_container(after)) == {OLD: "0.2", NEW: ""}
    assert granted(after, by).warnings == ()


def test_the_name_with_the_share_in_it_may_not() -> None:
    for on in (by_bash(f"unset {OLD}; python t.py"), mutated(by_bash(f"unset {OLD}; python t.py"), policies())):
        assert isinstance(decided(on, SLICED), Denied)


@BOTH
@pytest.mark.parametrize("text", [f"{NEW}=.1 python t.py", f"export {NEW}=${{{NEW}:-0.1}}; exec python t.py"])
def test_the_share_is_told_by_the_name_that_a_text_sets(text: str, by: Any) -> None:
    after = mutated(by_bash(text), by)
    assert environment(only_container(after)) == {NEW: "0.2", OLD: ""}
    assert mutated(after, by) == after


def by_words(*command: str, **fields: Any) -> dict[str, Any]:
    return jax(command=list(command), **fields)


@BOTH
@pytest.mark.parametrize(
    ("on", "told"),
    [
        (by_bash(f"export {NEW}=\npython t.py"), OLD),
        (by_bash(f"{NEW}= python t.py"), OLD),
        (by_bash(f"env {NEW}= {OLD}=0.15 python t.py"), OLD),
        (by_bash(f"if [ -n $DEBUG ]; then export {NEW}=; fi; python t.py"), OLD),
        (by_bash(f'export {NEW}="" {OLD}=${{{OLD}:-0.15}}; python t.py'), OLD),
        (by_bash(f"export {OLD}= {NEW}=0.15; python t.py"), NEW),
        (by_words("zsh", "-c", f"{NEW}= python t.py"), OLD),
        (by_words("csh", "-c", f'setenv {NEW} ""; python t.py'), OLD),
        (by_words("env", f"{NEW}=", "python", "t.py"), OLD),
        (by_words("env", f"{OLD}=", f"{NEW}=0.15", "python", "t.py"), NEW),
        (by_words("mpiexec", "-genv", NEW, "", "python", "t.py"), OLD),
    ],
)
def test_the_share_is_told_by_the_name_that_is_not_set_to_nothing(on: Any, told: str, by: Any) -> None:
    assert granted(on, by).warnings == ()
    after = mutated(on, by)
    assert environment(only_container(after)) == {told: "0.2", NEW if told == OLD else OLD: ""}
    assert only_container(after)["command"] == only_container(on)["command"]
    assert mutated(after, by) == after


@pytest.mark.parametrize("of", [OLD, NEW])
@pytest.mark.parametrize("text", ["export {0}=; python t.py", "{0}= python t.py", "env {0}= python t.py"])
def test_the_name_that_has_the_share_may_not_be_set_to_nothing(text: str, of: str) -> None:
    on = jax(*([(NEW, "0.1")] if of == NEW else []), command=["bash", "-c", text.format(of)])
    decision = decided(on, SLICED)
    assert isinstance(decision, Denied)
    assert "nothing, as far as the text says" in decision.deny.message


@BOTH
@pytest.mark.parametrize(
    ("command", "lowered"),
    [
        (["env", f"{OLD}=", "python", "t.py"], ["env", f"{OLD}=0.2", "python", "t.py"]),
        (["mpiexec", "-genv", OLD, "", "python"], ["mpiexec", "-genv", OLD, "0.2", "python"]),
    ],
)
def test_a_word_that_sets_the_name_with_the_share_to_nothing_is_lowered(
    command: list[str], lowered: list[str], by: Any
) -> None:
    after = mutated(by_words(*command), by)
    assert only_container(after)["command"] == lowered
    assert mutated(after, by) == after


@pytest.mark.parametrize(
    "text",
    [
        f"export {NEW}=${{{OLD}}}; unset {OLD}; python t.py",
        f'export {NEW}="${OLD}" {OLD}=; python t.py',
        f"{NEW}=${{{OLD}:-}} env -u {OLD} python t.py",
    ],
)
def test_what_a_text_moves_to_the_other_name_is_told_by_the_first(text: str) -> None:
    assert environment(only_container(mutated(by_bash(text), policies()))) == {OLD: "0.2", NEW: ""}
    denied = decided(by_bash(text), SLICED)
    assert isinstance(denied, Denied)
    assert isinstance(decided(by_bash(text.replace(f"${{{OLD}}}", f"${{{OLD}:-0.1}}")), policies()), Grant)


ELSEWHERE = [
    by_python(f"import os; print(os.environ['{NEW}'])"),
    by_python(f"import os; os.environ.setdefault('{NEW}', '0.15'); import jax"),
    by_python(f"import os; os.environ['{NEW}'] = os.environ.pop('{OLD}', '0.15'); import jax"),
    by_python(f"import os; os.environ.pop('{NEW}', None); import jax"),
    jax(lifecycle={"preStop": {"exec": {"command": ["env", f"{NEW}=.1", "python", "save.py"]}}}),
]


@BOTH
@pytest.mark.parametrize("on", ELSEWHERE, ids=str)
def test_code_and_hooks_do_not_change_the_name_which_all_versions_read(on: Any, by: Any) -> None:
    assert environment(only_container(mutated(on, by))) == {OLD: "0.2", NEW: ""}


@BOTH
def test_a_share_comes_before_what_empties_its_variable_for_another_framework(by: Any) -> None:
    of = by.of("default").policy.strategy
    entry = f"{{name: alphafold3, programs: [python run.py], source: s, memory: {{spellings: [{{variable: {NEW}}}]}}}}"
    cluster = policies(f"strategy: {of}", f"frameworks: [{entry}]")
    after = mutated(by_bash("pip install -e . && python run.py"), cluster)
    assert environment(only_container(after)) == {OLD: "0.2", NEW: "0.2"}
    assert mutated(after, cluster) == after


@BOTH
def test_code_makes_pytorch_no_other_name_since_what_it_sets_is_not_the_share(by: Any) -> None:
    name = "PYTORCH_ALLOC_CONF"
    code = f"import os; os.environ['{name}'] = 'expandable_segments:True'; import torch"
    on = jax(image="pytorch/pytorch:2.10.0-cuda13.0-runtime", command=["python", "-c", code])
    made = environment(only_container(mutated(on, by)))
    assert made == {"PYTORCH_CUDA_ALLOC_CONF": "per_process_memory_fraction:0.2"}


@BOTH
def test_an_image_that_nobody_knows_is_left_alone(by: Any) -> None:
    on = jax((NEW, ""), image="x/y:1")
    assert only_container(mutated(on, by))["env"] == [{"name": NEW, "value": ""}]


ENTRY = "frameworks: [{{name: acme, images: [acme], source: s, memory: {{exclusive: true, spellings: [{}]}}}}]"


def test_an_entry_whose_settings_are_items_of_lists_may_not_say_so() -> None:
    item = "{variable: ACME, value: 'part:{fraction}', separator: ','}"
    with pytest.raises(PolicyError, match="two variables that are no lists"):
        policies("", ENTRY.format(f"{item}, {item.replace('ACME', 'ACME_GPU')}"))


def test_an_entry_of_ones_own_may_say_so() -> None:
    by = policies("", ENTRY.format("{variable: ACME}, {variable: ACME_GPU}"))
    made = environment(only_container(mutated(jax(image="acme:1"), by)))
    assert made == {"ACME": "0.2", "ACME_GPU": ""}
    assert isinstance(decided(jax(("ACME", "0.1"), ("ACME_GPU", ""), image="acme:1"), by), Grant)
