"""`gpu-share explain` says what to do about what CUDA says in a container, as the documents do."""

import pytest

from policies.node_state import Use
from tests.console.explained import Asked, explain, known
from tests.console.objects import GIB, gpu, pod, state, tenant
from tests.console.test_explain_remedies import ended

BUSY = "CUDA error: CUDA-capable device(s) is/are busy or unavailable"
LESS = (
    "Free memory on device cuda:0 (10/139 GiB) on startup is less than desired GPU memory utilization (0.2, 27.96 GiB)"
)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("RuntimeError: CUDA error: out of memory", "the memory of its share is used up"),
        (BUSY, "the program does not go through MPS, or another has the GPU"),
        ("cudaErrorDevicesUnavailable", "the program does not go through MPS, or another has the GPU"),
        (
            "CUDA error 805: MPS client failed to connect to the MPS control daemon or the MPS server",
            "the MPS daemon is gone, or recovers from a fault",
        ),
        ("cudaErrorMpsServerNotReady: MPS server is not ready", "the MPS daemon is gone, or recovers from a fault"),
        (
            "CUDA error: the remote procedural call between the MPS server and the MPS client failed",
            "the MPS daemon is gone, or recovers from a fault",
        ),
        ("CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "the tenants of the GPU have more CUDA contexts than MPS serves"),
        (LESS, "less was free at start than its fraction"),
        ("RuntimeError: no CUDA-capable device is detected", "the container has no GPU"),
    ],
)
def test_what_cuda_says_of_a_gpu_has_its_remedy(asked: Asked, said: str, told: str) -> None:
    text = explain(asked, known(pod("p", **ended(said))), "p")
    assert text.count("what to do: ") == 1
    assert f"what to do: {told}" in text


def beside_a_hog(asked: Asked, said: str) -> str:
    """What is told of a pod whose program ended with what it *said*, where a neighbour takes more than its share."""
    hog = tenant("hog", 2, use=Use(memory_bytes=125 * GIB))
    shared = state(gpu(tenant("resnet-0", 2), hog, strategy="time-slicing", limits_enforced_by="", mps_daemon=None))
    return explain(asked, known(pod("resnet-0", **ended(said)), state=shared), "resnet-0")


@pytest.mark.parametrize("said", [LESS, "CUDA out of memory", f"{LESS}. CUDA error: out of memory"])
def test_a_program_without_memory_is_told_once_of_neighbours_that_take_more_than_their_share(
    asked: Asked, said: str
) -> None:
    text = " ".join(beside_a_hog(asked, said).split())
    taken = "hog/main takes 125.0 GiB, and its limit is 28.0 GiB"
    assert text.count("what to do: ") == text.count(taken) == 1
    assert "others on the GPU leave it less than its share: " in text
    assert "headroom" not in text


def test_a_busy_gpu_is_not_told_to_lack_memory_where_others_take_more_than_their_share(asked: Asked) -> None:
    text = beside_a_hog(asked, BUSY)
    assert "what to do: the program does not go through MPS" in text
    assert "leave it less than its share" not in text
