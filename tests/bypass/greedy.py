"""One container that tells its framework to take more than its share, and what becomes of it."""

from typing import Any, Literal, NamedTuple

from tests.policies.pods import container, pod

# lowered: the value is brought to the share. kept: there is nothing above it. warned: it cannot be read, and MPS
# limits it. denied: MemoryArgumentAboveShare. limited: denied where it is certain; one of several values that may stand
# there is a warning, and MPS limits it.
Outcome = Literal["lowered", "kept", "warned", "denied", "limited"]

OWN = "registry.example/team/server:3"
VLLM = "vllm/vllm-openai:v0.11.0"
TORCH = "pytorch/pytorch:2.10.0"
USE = "--gpu-memory-utilization"
JAX = "XLA_PYTHON_CLIENT_MEM_FRACTION"
CONF = "PYTORCH_CUDA_ALLOC_CONF"
FRACTION = "per_process_memory_fraction"
CONFIG_MAP = {"valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}
SECRET = {"valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}
NAME = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
LABEL = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['x']"}}}
NOTE = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['x']"}}}
COUNT = {"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}


class Greedy(NamedTuple):
    """One container, and what becomes of it under MPS and under time-slicing."""

    name: str
    fields: dict[str, Any]
    under_mps: Outcome
    sliced: Outcome
    annotations: dict[str, str] = {}  # noqa: RUF012 - never changed

    def pod(self) -> dict[str, Any]:
        return pod("0.2", container(**({"image": OWN} | self.fields)), annotations=self.annotations)


def vllm(*args: str, env: list[dict[str, Any]] | None = None, **fields: Any) -> dict[str, Any]:
    return {"image": VLLM, "args": ["--model=m", *args], **({"env": env} if env else {}), **fields}
