"""What docs/troubleshooting.md proposes for start scripts that are denied under time-slicing."""

from typing import Any

import pytest

from policies.grant import Denied
from tests.policies.pods import container, decided, granted, pod, policies

SLICED = policies("strategy: time-slicing")
U = "--gpu-memory-utilization"
C = "PYTORCH_CUDA_ALLOC_CONF"
TORCH = {"image": "pytorch/pytorch:2.10.0-cuda13.0-runtime"}
WORDS = ["x", "8000", "m", "0.2"]
INSTEAD: list[tuple[str, str, dict[str, Any]]] = [
    (f'shift; vllm serve "$1" {U} "$2"', f'shift; vllm serve "$1" {U}=0.2', {}),
    (f'A=(m 8000 0.2); vllm serve {U} "${{A[2]}}"', f'A=(m 8000 {U}=0.2); vllm serve "${{A[@]}}"', {}),
    (
        f"while [ $# -gt 0 ]; do case $1 in m) M=$1;; *) F=$1;; esac; shift; done; vllm serve m {U} $F",
        f"while [ $# -gt 0 ]; do case $1 in m) M=$1;; esac; shift; done; vllm serve m {U} $GPU_SHARE_FRACTION",
        {},
    ),
    (
        f'[ -n "$U" ] || U=0.9\nvllm serve m {U} $U',
        f"vllm serve m {U} ${{U:-0.9}}",
        {"env": [{"name": "U", "value": "0.2"}]},
    ),
    (f"F=$(cat /x)\nvllm serve m {U} $F", f"vllm serve m {U} $GPU_SHARE_FRACTION", {}),
    (
        f"export {C}=$F\ntorchrun t.py",
        f"export {C}=per_process_memory_fraction:$GPU_SHARE_FRACTION\ntorchrun t.py",
        TORCH,
    ),
    (f"vllm serve m {U} $F", f"vllm serve m {U} ${{F:-0.2}}", {}),
    (f"echo 'see {U}'\nvllm serve m", "echo 'see gpu-memory-utilization'\nvllm serve m", {}),
    (f"export {C}=a:b; torchrun t.py", f"export {C}=${C},a:b; torchrun t.py", TORCH),
    (f"{C}=a:b torchrun t.py", f"{C}=${C},a:b torchrun t.py", TORCH),
    (f"cd /w && export {C}=a:b && torchrun t.py", f"cd /w && export {C}=${C},a:b && torchrun t.py", TORCH),
]


@pytest.mark.parametrize(("denied", "instead", "fields"), INSTEAD, ids=[denied for denied, _, _ in INSTEAD])
def test_what_is_proposed_instead_is_granted(denied: str, instead: str, fields: dict[str, Any]) -> None:
    refused = decided(pod("0.2", container(command=["bash", "-c", denied, *WORDS], **fields)), SLICED)
    assert isinstance(refused, Denied)
    assert refused.deny.code == "MemoryArgumentAboveShare"
    granted(pod("0.2", container(command=["bash", "-c", instead, *WORDS], **fields)), SLICED)
