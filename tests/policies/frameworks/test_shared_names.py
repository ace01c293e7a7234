"""A name that an entry of `_cluster.yaml` shares with a built-in framework lifts none of the built-in one's checks."""

from typing import Any

import pytest

from policies.errors import Problem
from policies.reading.layers import read_layer
from tests.policies.pods import container, denied, environment, granted, mutated, only_container, pod, policies

VLLM = "vllm/vllm-openai:v0.11.0"
SHARED = "PYTORCH_CUDA_ALLOC_CONF"


def problems_of(text: str) -> list[Problem]:
    problems: list[Problem] = []
    read_layer("_cluster.yaml", text, problems)
    return problems


def entry(spelling: str) -> str:
    """An entry that has *spelling* for its memory."""
    return (
        f"{{name: acme, images: [acme/torch], programs: [acme-serve], source: s, memory: {{spellings: [{spelling}]}}}}"
    )


def beside(spelling: str) -> Any:
    """Policies with such an entry, under time-slicing."""
    return policies("strategy: time-slicing", f"frameworks: [{entry(spelling)}]")


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ('{argument: --gpu-memory-utilization, value: "{percent}"}', "--gpu-memory-utilization"),
        ('{argument: --gpu_memory_utilization, value: "{percentLeft}"}', "--gpu_memory_utilization"),
        ('{variable: XLA_PYTHON_CLIENT_MEM_FRACTION, value: "{percent}"}', "XLA_PYTHON_CLIENT_MEM_FRACTION"),
        ("{variable: CUPY_GPU_MEMORY_LIMIT}", "CUPY_GPU_MEMORY_LIMIT"),
        (f"{{variable: {SHARED}}}", SHARED),
        (f'{{variable: {SHARED}, value: "acme:{{fraction}}", separator: ";"}}', SHARED),
        (f'{{variable: {SHARED}, value: "per_process_memory_fraction:{{percent}}", separator: ","}}', SHARED),
    ],
)
def test_a_name_that_another_framework_has_for_a_value_of_another_form_is_a_fault(spelling: str, name: str) -> None:
    (problem,) = problems_of(f"frameworks: [{entry(spelling)}]")
    assert problem.field == "frameworks[0].memory.spellings[0]"
    assert f"has {name} for a value of another form" in problem.message


def test_so_it_is_of_two_entries_and_not_of_one_that_replaces_the_other() -> None:
    percent = '{argument: --mem, value: "{percent}"}'
    two = f"frameworks: [{entry('{argument: --mem}')}, {entry(percent).replace('acme', 'other')}]"
    (problem,) = problems_of(two)
    assert problem.field == "frameworks[1].memory.spellings[0]"
    instead = '{argument: --gpu-memory-utilization, value: "{percent}"}'
    assert problems_of(f"frameworks: [{entry(instead).replace('name: acme', 'name: vllm')}]") == []


@pytest.mark.parametrize(
    ("memory", "field", "told"),
    [
        (
            "spellings: [{argument: --acme}], overriddenBy: [{argument: --gpu_memory-utilization, source: s}]",
            "overriddenBy[0]",
            "vllm has --gpu_memory-utilization too",
        ),
        (
            "spellings: [{argument: --acme}], overriddenBy: [{variable: XLA_PYTHON_CLIENT_MEM_FRACTION, source: s}]",
            "overriddenBy[0]",
            "jax has XLA_PYTHON_CLIENT_MEM_FRACTION too",
        ),
        (
            f"spellings: [{{argument: --acme}}], overriddenBy: [{{variable: {SHARED}, source: s}}]",
            "overriddenBy[0]",
            f"pytorch has {SHARED} too",
        ),
        ("spellings: [{argument: --kv-cache-memory-bytes}]", "spellings[0]", "vllm has --kv-cache-memory-bytes too"),
        (
            "spellings: [{argument: --acme}, {argument: --acme, value: '{percent}'}]",
            "spellings[1]",
            "this entry has --acme for a value of another form",
        ),
        (
            "spellings: [{argument: --acme}], overriddenBy: [{argument: --acme, source: s}]",
            "overriddenBy[0]",
            "this entry has --acme too",
        ),
        (
            (
                "spellings: [{argument: --acme}], overriddenBy: [{variable: X, begins: a, separator: ';', source: s}, "
                "{variable: X, begins: b, source: s}]"
            ),
            "overriddenBy[1]",
            "this entry has X with another separator",
        ),
    ],
)
def test_a_memory_setting_and_what_overrides_one_have_no_name_in_common(memory: str, field: str, told: str) -> None:
    text = f"frameworks: [{{name: acme, images: [acme/torch], source: s, memory: {{{memory}}}}}]"
    (problem,) = problems_of(text)
    assert problem.field == f"frameworks[0].memory.{field}"
    assert problem.message.startswith(told)


def test_of_a_variable_of_several_settings_one_may_override_another() -> None:
    memory = (
        f'spellings: [{{variable: {SHARED}, value: "acme:{{fraction}}", separator: ","}}], overriddenBy: '
        f'[{{variable: {SHARED}, begins: "acme_pool:", separator: ",", source: s}}]'
    )
    assert problems_of(f"frameworks: [{{name: acme, images: [acme/torch], source: s, memory: {{{memory}}}}}]") == []


@pytest.mark.parametrize(
    ("entry", "field", "told"),
    [
        (
            "optionPrefixes: [acme_], memory: {spellings: [{argument: --acme}, {variable: acme_gpu_fraction}]}",
            "memory.spellings[1]",
            "what begins like acme_gpu_fraction is read in capitals, by optionPrefixes: write acme_GPU_FRACTION",
        ),
        (
            "optionPrefixes: [FLAGS_]",
            "optionPrefixes[0]",
            "paddlepaddle has FLAGS_fraction_of_gpu_memory_to_use, which begins so and is not in capitals",
        ),
    ],
)
def test_no_variable_is_hidden_by_the_names_that_are_read_in_capitals(entry: str, field: str, told: str) -> None:
    (problem,) = problems_of(f"frameworks: [{{name: acme, source: s, {entry}}}]")
    assert problem.field == f"frameworks[0].{field}"
    assert problem.message.startswith(told)
    assert problems_of("frameworks: [{name: acme, source: s, optionPrefixes: [ACME_, OPTION_]}]") == []


SAME = (
    "frameworks: [{name: my-vllm, images: [acme/llm], imageTakesArguments: true, source: s, "
    "memory: {spellings: [{argument: --gpu_memory_utilization}]}}]"
)


@pytest.mark.parametrize("strategy", ["mps", "time-slicing"])
@pytest.mark.parametrize(("image", "named"), [("acme/llm:1", None), ("mine:1", "vllm"), ("mine:1", None)])
def test_a_value_within_the_share_stays_where_an_image_is_added_by_an_entry_of_its_own(
    image: str, named: str | None, strategy: str
) -> None:
    by = policies(f"strategy: {strategy}", SAME)
    annotations = {"gpu-share.dev/framework": named} if named else {}
    own = container(image=image, command=["vllm", "serve", "m"], args=["--gpu-memory-utilization=0.18"])
    on = pod("0.2", own, annotations=annotations)
    assert only_container(mutated(on, by))["args"] == own["args"]
    assert granted(on, by).warnings == ()
    text = pod("0.2", container(image=image, command=["sh", "-c", "vllm serve m --gpu-memory-utilization 0.18"]))
    assert granted(text, by).warnings == ()


@pytest.mark.parametrize("unit", ["percent", "percentLeft"])
def test_an_abbreviation_is_judged_as_that_of_the_framework_that_runs(unit: str) -> None:
    by = beside(f'{{argument: --gpu-memory, value: "{{{unit}}}"}}')
    text = container(image=VLLM, command=["sh", "-c", "exec vllm serve x --gpu-memory 0.9"])
    assert denied(pod("0.2", text), by).code == "MemoryArgumentAboveShare"


@pytest.mark.parametrize("image", ["mine:1", "acme/torch:1", "pytorch/pytorch:2.10"])
@pytest.mark.parametrize(
    ("value", "after"),
    [
        ("per_process_memory_fraction:0.9", "per_process_memory_fraction:0.2"),
        ("acme_fraction:0.9", "acme_fraction:0.2"),
        ("acme_fraction:0.9,per_process_memory_fraction:0.9", "acme_fraction:0.2,per_process_memory_fraction:0.2"),
    ],
)
def test_of_a_variable_of_several_settings_each_is_lowered(image: str, value: str, after: str) -> None:
    by = beside(f'{{variable: {SHARED}, value: "acme_fraction:{{fraction}}", separator: ","}}')
    on = pod("0.2", container(image=image, env=[{"name": SHARED, "value": value}]))
    written = environment(only_container(mutated(on, by)))[SHARED].split(",")
    assert set(after.split(",")) <= set(written)
    assert not any(one.endswith(":0.9") for one in written)


TRITON = "nvcr.io/nvidia/tritonserver:25.01-py3"
PYTHON_BACKEND = '{argument: --backend-config, value: "python,gpu-memory-fraction={fraction}"}'


@pytest.mark.parametrize(
    ("spelling", "image", "own", "added"),
    [
        (
            PYTHON_BACKEND,
            TRITON,
            {"command": ["tritonserver"], "args": ["--backend-config=python,gpu-memory-fraction=0.1"]},
            "--backend-config=tensorflow,gpu-memory-fraction=0.2",
        ),
        (
            "{variable: gpu_memory_utilization}",
            VLLM,
            {"args": ["--model", "m"], "env": [{"name": "gpu_memory_utilization", "value": "0.1"}]},
            "--gpu-memory-utilization=0.2",
        ),
    ],
)
def test_another_setting_of_the_same_name_does_not_count_as_the_frameworks_own(
    spelling: str, image: str, own: Any, added: str
) -> None:
    on = pod("0.2", container(image=image, **own))
    assert only_container(mutated(on, beside(spelling)))["args"] == [*own["args"], added]


@pytest.mark.parametrize(("value", "is_harmless"), [("False", True), ("false", True), ("True", False)])
def test_what_is_harmless_is_so_in_whatever_case(value: str, *, is_harmless: bool) -> None:
    memory = "spellings: [{argument: --acme}], overriddenBy: [{variable: ACME_POOL, harmless: ['False'], source: s}]"
    by = policies(
        "strategy: time-slicing", f"frameworks: [{{name: acme, images: [acme/x], source: s, memory: {{{memory}}}}}]"
    )
    on = pod("0.2", container(image="acme/x", env=[{"name": "ACME_POOL", "value": value}]))
    if is_harmless:
        assert mutated(on, by)
    else:
        assert "Remove" in denied(on, by).message


def test_a_list_under_a_prefix_is_joined_or_set_once_in_whatever_case_it_is_written() -> None:
    memory = 'spellings: [{variable: ACME_CONF, value: "f={fraction}", separator: ","}]'
    by = policies(
        "strategy: time-slicing",
        f"frameworks: [{{name: acme, images: [acme/x], source: s, optionPrefixes: [ACME_], memory: {{{memory}}}}}]",
    )
    once = mutated(pod("0.2", container(image="acme/x", env=[{"name": "ACME_conf", "value": "x=1"}])), by)
    assert mutated(once, by) == once
