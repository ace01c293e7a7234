"""Triton's `--backend-config` has a fraction for one backend, and what cannot be read may be another one's."""

from typing import Any

import pytest

from tests.policies.pods import container, denied, granted, pod, policies

IMAGE = "nvcr.io/nvidia/tritonserver:24.10-py3"
SLICED = policies("strategy: time-slicing")
ENV = [
    {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}},
    {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
]
ANOTHERS = (
    "python,shm-region-prefix-name=$(POD_NAME)",
    "python,shm-region-prefix-name=x$(X)",
    "onnxruntime,default-max-batch-size=$(X)",
    "python,$(X)",
    "python$(X)",
    "tensorflow,version=$(X)",
    "TensorFlow,gpu-memory-fraction=$(X)",  # Triton knows no such backend
)
PERHAPS_ITS = (
    "$(X)",
    "$(X),shm=1",
    "$(X)python,shm=1",
    "tensor$(X)",
    "tensorflow,$(X)",
    "tensorflow,gpu-$(X)=0.2",
    "tensorflow,gpu-memory-fraction=$(X)",
    "tensorflow,gpu-memory-fraction=0.$(X)",
    "gpu-memory-$(X)",
    " tensorflow,gpu$(X)",
)
AS_TEXTS = ('tritonserver "--backend-config={}"', 'tritonserver --backend-config "{}"')


def triton(*words: str) -> dict[str, Any]:
    return pod("0.2", container(image=IMAGE, command=list(words), env=ENV))


def as_text(text: str, value: str) -> dict[str, Any]:
    return triton("sh", "-c", text.format(value.strip().replace("(", "{").replace(")", "}")))


@pytest.mark.parametrize("value", ANOTHERS)
def test_a_value_that_begins_as_another_backends_is_granted(value: str) -> None:
    assert granted(triton("tritonserver", f"--backend-config={value}"), SLICED).warnings == ()
    assert granted(triton("tritonserver", "--backend-config", value), SLICED).warnings == ()
    for text in AS_TEXTS:
        granted(as_text(text, value), SLICED)


@pytest.mark.parametrize("value", PERHAPS_ITS)
def test_a_value_that_may_become_the_fraction_is_denied_under_time_slicing(value: str) -> None:
    assert denied(triton("tritonserver", f"--backend-config={value}"), SLICED).code == "MemoryArgumentAboveShare"
    assert denied(triton("tritonserver", "--backend-config", value), SLICED).code == "MemoryArgumentAboveShare"
    for text in AS_TEXTS:
        assert denied(as_text(text, value), SLICED).code == "MemoryArgumentAboveShare"


@pytest.mark.parametrize("text", ["tritonserver --backend-config=python,x=$X", "f --backend-config={python,x},y=$X"])
def test_what_may_become_several_words_is_denied_under_time_slicing(text: str) -> None:
    assert denied(triton("sh", "-c", text), SLICED).code == "MemoryArgumentAboveShare"
