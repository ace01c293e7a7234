"""What the frameworks of `_cluster.yaml` cannot do to variables: pods would be denied for what they were given."""

import pytest

from policies.errors import Problem
from policies.reading.layers import read_layer

ENTRY = "frameworks:\n- name: x\n  source: s\n"


def problems_of(text: str) -> list[Problem]:
    problems: list[Problem] = []
    read_layer("_cluster.yaml", ENTRY + text, problems)
    return problems


def constant(variable: str, value: str, strategies: str = "[mps, time-slicing]") -> str:
    return f"  constants:\n  - variable: {variable}\n    value: '{value}'\n    strategies: {strategies}\n"


@pytest.mark.parametrize("value", ["all", "compute,graphics", "Compute", "$(A)"])
def test_a_constant_gives_pods_under_mps_nothing_that_draws(value: str) -> None:
    (problem,) = problems_of(constant("NVIDIA_DRIVER_CAPABILITIES", value))
    assert (problem.line, problem.field) == (6, "frameworks[0].constants[0].value")
    assert problem.message.startswith("has more than compat32, compute, utility, video: MPS limits no graphics")
    assert problem.message.endswith("write no more than these, or strategies: [time-slicing]")
    assert problems_of(constant("NVIDIA_DRIVER_CAPABILITIES", value, "[time-slicing]")) == []


@pytest.mark.parametrize("value", ["", "compute, utility", "compat32,video,compute,utility"])
def test_a_constant_may_give_pods_what_computes(value: str) -> None:
    assert problems_of(constant("NVIDIA_DRIVER_CAPABILITIES", value)) == []


def test_what_pods_have_of_the_driver_is_no_memory_setting() -> None:
    name = "variable: NVIDIA_DRIVER_CAPABILITIES"
    override = f"overriddenBy: [{{{name}, source: s}}]"
    (spelled,) = problems_of(f"  memory:\n    spellings:\n    - {name}\n")
    (overriding,) = problems_of(f"  memory:\n    spellings: [{{variable: A}}]\n    {override}\n")
    assert [one.field for one in (spelled, overriding)] == [
        "frameworks[0].memory.spellings[0]",
        "frameworks[0].memory.overriddenBy[0]",
    ]
    assert all(one.message.endswith("under MPS are denied for it: name another") for one in (spelled, overriding))


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("CUPY_GPU_MEMORY_LIMIT", "90%", 'sets "CUPY_GPU_MEMORY_LIMIT", a memory setting'),
        ("ARGS", "--gpu-memory-utilization 0.9", 'sets "--gpu-memory-utilization", a memory setting'),
        ("XLA_CLIENT_MEM_FRACTION", "$(A)", 'sets "XLA_CLIENT_MEM_FRACTION", a memory setting'),
        pytest.param("ARGS", "-mem=1 " * 140 + "x", "ARGS is longer than what is read of a pod", id="long"),
    ],
)
def test_a_constant_makes_no_memory_setting(variable: str, value: str, told: str) -> None:
    (problem,) = problems_of(constant(variable, value, "[time-slicing]"))
    assert (problem.line, problem.field) == (5, "frameworks[0].constants[0]")
    assert problem.message.startswith(told)


def test_a_constant_overrides_no_share_where_nothing_else_limits_memory() -> None:
    platform = ("XLA_PYTHON_CLIENT_ALLOCATOR", "platform")
    (problem,) = problems_of(constant(*platform))
    assert problem.message.startswith('with "XLA_PYTHON_CLIENT_ALLOCATOR" jax takes memory whatever its share is')
    assert problem.message.endswith("remove it, or write strategies: [mps]")
    assert problems_of(constant(*platform, "[mps]")) == []
    assert problems_of(constant("XLA_PYTHON_CLIENT_ALLOCATOR", "bfc")) == []


def test_each_constant_is_a_problem_of_its_own() -> None:
    text = constant("A", "1") + "  - {variable: CUPY_GPU_MEMORY_LIMIT, value: 90%}\n" * 2
    assert [(one.line, one.field) for one in problems_of(text)] == [
        (8, "frameworks[0].constants[1]"),
        (9, "frameworks[0].constants[2]"),
    ]


@pytest.mark.parametrize("variable", ["PYTORCH_CUDA_ALLOC_CONF", "JAX_PJRT_CLIENT_CREATE_OPTIONS"])
def test_a_constant_takes_no_variable_by_which_a_share_is_told(variable: str) -> None:
    (problem,) = problems_of(constant(variable, "expandable_segments:True"))
    assert problem.field == "frameworks[0].constants[0]"
    assert problem.message.endswith(f"is told its share by {variable}, which has one value: put it into the image")
