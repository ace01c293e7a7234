"""A memory setting that cannot be read stays where nothing that it may be is too much, and nowhere else."""

from collections.abc import Iterator
from typing import Any

import pytest

from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.framework import Framework, Spelling
from policies.grant import Grant
from policies.policy_set import PolicySet
from policies.reasons import reasons
from tests.bypass.greedy import CONFIG_MAP
from tests.policies.partitioned import by as partitioned
from tests.policies.pods import container, decided, denied, granted, mutated, only_container, pod, policies

U = {"name": "U", **CONFIG_MAP}
DENY = "frameworks: {onConflict: deny}"
SLICED = "strategy: time-slicing"
OF_MAP = "which cannot be read"


def forms(spelling: Spelling) -> Iterator[dict[str, Any]]:
    """Yield the ways to set one setting by a ConfigMap's value."""
    before, after = spelling.around
    name, value = spelling.name, f"{before}$(U){after}"
    if spelling.argument:
        yield {"args": ["m", f"{name}={value}"], "env": [U]}
        yield {"args": ["m", name, value], "env": [U]}
        yield {"command": ["sh", "-c", f"./serve m {name}={before}$U{after}"], "env": [U]}
    else:
        yield {"env": [U, {"name": name, "value": value}]}
        yield {"env": [{"name": name, **CONFIG_MAP}]}
        yield {"command": ["env", f"{name}={value}", "./serve"], "env": [U]}
        yield {"command": ["sh", "-c", f"export {name}={before}$U{after}; ./serve"], "env": [U]}


def as_told(spelling: Spelling) -> Iterator[dict[str, Any]]:
    """Yield the ways to set one setting to what the device plugin tells the container."""
    (before, after), name = spelling.around, spelling.name
    if spelling.argument:
        yield container(args=["m", f"{name}={before}$(GPU_SHARE_FRACTION){after}"])
        yield container(args=["m", name, f"{before}$(GPU_SHARE_FRACTION){after}"])
        yield container(command=["sh", "-c", f'./serve m {name}={before}"$GPU_SHARE_FRACTION"{after}'])
    else:
        yield container(command=["env", f"{name}={before}$(GPU_SHARE_FRACTION){after}", "./serve"])
        yield container(command=["sh", "-c", f"export {name}={before}${{GPU_SHARE_FRACTION:-0.2}}{after}; ./serve"])


CASES = [
    pytest.param(one, spelling, container(**fields), id=f"{spelling.name}-{number}")
    for one in BUILT_IN
    if one.memory is not None
    for spelling in one.memory.spellings
    for number, fields in enumerate(forms(spelling))
]
OF_ALL = {
    "a GPU by MPS": ("1", policies()),
    "a GPU by time-slicing": ("1", policies(SLICED)),
    "a whole GPU": ("1", policies(f"share: {{whole: gpus}}\n{DENY}")),
    "a GPU where more is denied": ("1", policies(f"{SLICED}\n{DENY}")),
    "a partition": ("0.1", partitioned()),
    "a partition where more is denied": ("0.1", partitioned(rules=DENY)),
}


def stays(one: dict[str, Any], on: dict[str, Any], by: PolicySet) -> bool:
    """Whether a container keeps what it says itself, also at the second call of the webhook."""
    made = mutated(on, by)
    assert mutated(made, by) == made
    after = only_container(made)
    return all(after.get(field) == one.get(field) for field in ("command", "args", "env"))


def about(spelling: Spelling, on: dict[str, Any], by: PolicySet) -> list[str]:
    return [text for text in granted(on, by).warnings if text.startswith(f'"main": {spelling.name} ')]


@pytest.mark.parametrize(("framework", "spelling", "one"), CASES)
def test_it_stays_where_all_of_the_gpu_is_the_containers(
    framework: Framework, spelling: Spelling, one: dict[str, Any]
) -> None:
    for name, (share, by) in OF_ALL.items():
        on = pod(share, one)
        assert stays(one, on, by), (framework.name, name)
        assert about(spelling, on, by) == [], name


@pytest.mark.parametrize(("framework", "spelling", "one"), CASES)
def test_under_time_slicing_with_a_part_of_a_gpu_it_is_denied_or_replaced(
    framework: Framework, spelling: Spelling, one: dict[str, Any]
) -> None:
    on = pod("0.2", one)
    deny = denied(on, policies(SLICED))
    assert deny.code == "MemoryArgumentAboveShare"
    assert f"sets {spelling.name} to" in deny.message, framework.name
    assert denied(on, policies(f"{SLICED}\nframeworks: {{unread: warn, onConflict: deny}}")).code == deny.code
    trusting = policies(f"{SLICED}\nframeworks: {{unread: warn}}")
    (warning,) = about(spelling, on, trusting)
    is_kept = warning.endswith("; nothing else limits its memory")
    assert is_kept or warning.endswith(f"{OF_MAP}: replaced by the share")
    assert stays(one, on, trusting) is is_kept
    assert is_kept is (one.get("command", [""])[0] == "sh" or bool(spelling.separator))  # nothing is written there


@pytest.mark.parametrize(("framework", "spelling", "one"), CASES)
def test_under_mps_it_stays_with_a_warning_if_it_is_a_part_of_what_is_free(
    framework: Framework, spelling: Spelling, one: dict[str, Any]
) -> None:
    on, by = pod("0.2", one), policies(DENY)
    assert framework.memory is not None
    if framework.memory.of == "total":
        assert denied(on, by).message.startswith(f'Container "main" sets {spelling.name} to ')
        return
    assert stays(one, on, by)
    (warning,) = about(spelling, on, by)
    assert warning.endswith(f"{OF_MAP}; MPS limits it")


@pytest.mark.parametrize(
    ("framework", "spelling"),
    [
        pytest.param(one, spelling, id=spelling.name)
        for one in BUILT_IN
        if one.memory is not None
        for spelling in one.memory.spellings
        if spelling.kind == "fraction"
    ],
)
def test_it_stays_where_it_is_the_share_and_a_part_of_the_whole_gpu(framework: Framework, spelling: Spelling) -> None:
    ways = [policies(SLICED), policies(f"{SLICED}\n{DENY}")]
    if framework.memory is not None and framework.memory.of == "total":
        ways += [policies(), policies(DENY)]
    for one in as_told(spelling):
        for by in ways:
            assert stays(one, pod("0.2", one), by), one
            assert not any("cannot be read" in text for text in about(spelling, pod("0.2", one), by)), one


@pytest.mark.parametrize(
    ("option", "replaced"), [("--mem-fraction-static", "0.8"), ("--kv_cache_free_gpu_memory_fraction", "0.9")]
)
def test_under_mps_the_share_itself_is_not_taken_of_what_is_free(option: str, replaced: str) -> None:
    one = container(args=["m", f"{option}=$(GPU_SHARE_FRACTION)"])
    assert only_container(mutated(pod("0.2", one)))["args"] == ["m", f"{option}={replaced}"]
    assert stays(one, pod("1", one), policies())


@pytest.mark.parametrize("name", ["XLA_PYTHON_CLIENT_MEM_FRACTION", "PYTORCH_CUDA_ALLOC_CONF", "CUPY_GPU_MEMORY_LIMIT"])
def test_a_variable_too_long_to_be_read_is_nothing_to_deny_for_a_whole_gpu(name: str) -> None:
    one = container(env=[{"name": name, "value": "a" * 5000}])
    assert stays(one, pod("1", one), policies(DENY))
    assert denied(pod("0.2", one), policies(DENY)).code == "MemoryArgumentAboveShare"


def test_the_stricter_of_two_frameworks_that_have_one_name_counts() -> None:
    entries = "".join(
        f"- {{name: {of}-one, source: x, memory: {{of: {of}, spellings: [{{variable: ACME_PART}}]}}}}\n"
        for of in ("free", "total")
    )
    on = pod("0.2", container(env=[{"name": "ACME_PART", **CONFIG_MAP}]))
    made = mutated(on, policies(cluster=f"frameworks:\n{entries}"))
    assert only_container(made)["env"] == [{"name": "ACME_PART", "value": "0.2"}]
    long = container(env=[{"name": "ACME_PART", "value": "1" * 5000}])
    assert denied(pod("0.2", long), policies(DENY, f"frameworks:\n{entries}")).code == "MemoryArgumentAboveShare"


def test_preview_says_that_it_stays() -> None:
    on = pod("1", container(image="vllm/vllm-openai:v0.11.0", args=["m", "--gpu-memory-utilization=$(U)"], env=[U]))
    grant = decided(on)
    assert isinstance(grant, Grant)
    said = "  Its own --gpu-memory-utilization cannot be read, and stays: it is a part of what the container has."
    assert said in list(reasons(grant))
