"""What is said of a user's own setting is true of it."""

from typing import Any

import pytest

from tests.policies.pods import container, denied, environment, granted, mutated, only_container, pod, policies

MPS = policies()
SLICED = policies("strategy: time-slicing")
LIMIT = "CUPY_GPU_MEMORY_LIMIT"
BYTES = "a number of bytes, which cannot be compared with a share of a GPU that is not known yet"


def with_variable(name: str, value: str, share: str = "0.2", **fields: Any) -> dict[str, Any]:
    return pod(share, container(env=[{"name": name, "value": value}], **fields))


def test_a_number_of_bytes_stays_under_mps_which_limits_it() -> None:
    on = with_variable(LIMIT, "1073741824")
    assert environment(only_container(mutated(on, MPS))) == {LIMIT: "1073741824"}
    assert f'"main": {LIMIT} is "1073741824", {BYTES}; MPS limits it' in granted(on, MPS).warnings


def test_under_time_slicing_the_share_takes_the_place_of_a_number_of_bytes() -> None:
    on = with_variable(LIMIT, "1073741824")
    assert environment(only_container(mutated(on, SLICED))) == {LIMIT: "20%"}
    assert f'"main": {LIMIT} was "1073741824", {BYTES}: replaced by the share' in granted(on, SLICED).warnings


@pytest.mark.parametrize("value", ["1073741824", "0"])
def test_all_of_a_gpu_may_be_taken_whatever_the_number_of_bytes(value: str) -> None:
    on = with_variable(LIMIT, value, share="1")
    assert environment(only_container(mutated(on, SLICED))) == {LIMIT: value}
    assert not any(LIMIT in one for one in granted(on, SLICED).warnings)


@pytest.mark.parametrize("strategy", ["mps", "time-slicing"])
def test_a_number_of_bytes_is_denied_for_what_it_is(strategy: str) -> None:
    deny = denied(
        with_variable(LIMIT, "1073741824"), policies(f"strategy: {strategy}\nframeworks: {{onConflict: deny}}")
    )
    assert f'sets {LIMIT} to "1073741824", {BYTES}' in deny.message
    assert "Write a percentage within the share" in deny.message


def test_a_number_of_bytes_in_a_text_is_denied_where_nothing_else_limits_it() -> None:
    on = pod("0.2", container(command=["sh", "-c", f"{LIMIT}=1073741824 python t.py"]))
    assert f"{BYTES}, where it cannot be lowered" in denied(on, SLICED).message
    assert any(one.endswith(f"{BYTES}; MPS limits it") for one in granted(on, MPS).warnings)


def test_nobody_is_told_to_remove_what_is_not_set_for_them_then() -> None:
    image, setting = "vllm/vllm-openai:v0.11.0", "--gpu-memory-utilization 0.95"
    deny = denied(pod("0.2", container(image=image, args=setting.split())), policies("frameworks: {onConflict: deny}"))
    assert "Lower it to the share, or remove it and it is set for you." in deny.message
    text = container(image=image, command=["sh", "-c", f"vllm serve m {setting}"])
    deny = denied(pod("0.2", text), MPS)
    assert deny.message.endswith("where it cannot be lowered. Lower it to the share.")


@pytest.mark.parametrize("by", [MPS, SLICED])
def test_no_bytes_are_no_limit(by: Any) -> None:
    on = with_variable(LIMIT, "0")
    assert environment(only_container(mutated(on, by))) == {LIMIT: "20%"}
    assert any(one.endswith("which some frameworks take for no limit: lowered") for one in granted(on, by).warnings)


@pytest.mark.parametrize(
    ("name", "value", "share"),
    [
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", "$(GPU_SHARE_FRACTION)", "0.2"),
        (LIMIT, "$(GPU_SHARE_FRACTION)%", "20%"),
        (LIMIT, "$(LIMIT_OF_NOBODY)", "20%"),
    ],
)
@pytest.mark.parametrize("by", [MPS, SLICED])
def test_a_reference_that_the_kubelet_leaves_as_it_is_is_called_one(name: str, value: str, share: str, by: Any) -> None:
    on = with_variable(name, value)
    assert environment(only_container(mutated(on, by)))[name] == share
    said = f'"main": {name} was "{value}", which the kubelet does not expand there: replaced by the share'
    assert said in granted(on, by).warnings


def test_what_cannot_be_read_may_have_been_less_and_is_replaced_or_to_be_written_out() -> None:
    of_map = {"name": LIMIT, "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}
    on = pod("0.2", container(env=[of_map]))
    assert granted(on, MPS).warnings == (
        f'"main": {LIMIT} was a reference, which cannot be read: replaced by the share',
    )
    message = denied(on, policies("frameworks: {onConflict: deny}")).message
    assert message.endswith("Write it out, within the share, or remove it and it is set for you.")


def test_a_denial_names_the_framework_that_runs_and_another_as_an_example() -> None:
    of_another = denied(with_variable("TF_GPU_ALLOCATOR", "cuda_malloc_async", image="tensorflow/tensorflow"), SLICED)
    assert "with which a framework such as tensorflow-serving takes memory" in of_another.message
    of_its_own = denied(with_variable("TF_GPU_ALLOCATOR", "cuda_malloc_async", image="tensorflow/serving"), SLICED)
    assert "with which tensorflow-serving takes memory" in of_its_own.message


@pytest.mark.parametrize("text", ['exec "$@"', f'exec "$@" {"- " * 6000}'], ids=["read", "too long to be read"])
@pytest.mark.parametrize("empty", ["''", '""', "$(EMPTY)"])
def test_a_word_that_comes_to_nothing_puts_what_stands_behind_it_into_no_doubt(text: str, empty: str) -> None:
    words = ["sh", "-c", text, "x", "a;", empty, "a$", "vllm serve m --gpu-memory-utilization=0.9"]
    on = container(image="vllm/vllm-openai:v0.11.0", command=words, env=[{"name": "EMPTY", "value": ""}])
    assert 'Container "main" sets --gpu-memory-utilization to "0.9"' in denied(pod("0.2", on), MPS).message
