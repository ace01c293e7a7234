"""What Argo starts gets the memory setting that it gets without Argo."""

import pytest

from policies.policy_set import PolicySet
from tests.policies.frameworks.test_memory import MPS, SLICED, set_by_us

ARGO = ["/var/run/argo/argoexec", "emissary", "--loglevel", "info", "--log-format", "text", "--gloglevel", "0", "--"]


@pytest.mark.parametrize("by", [MPS, SLICED], ids=["mps", "time-slicing"])
@pytest.mark.parametrize(
    ("image", "line"),
    [
        ("vllm/vllm-openai:v0.11.0", "vllm serve"),
        ("lmsysorg/sglang:v0.5.3", "python3 -m sglang.launch_server"),
        ("tensorflow/serving:2.19.1-gpu", "/usr/bin/tensorflow_model_server"),
        ("nvcr.io/nvidia/tritonserver:25.01-py3", "tritonserver"),
    ],
)
def test_what_argo_starts_is_told_its_share_as_without_argo(image: str, line: str, by: PolicySet) -> None:
    fields = {"args": ["m", "--port=8000"]}
    told = set_by_us(image, "0.2", by, command=line.split(), **fields)
    assert len(told) == 1
    assert set_by_us(image, "0.2", by, command=[*ARGO, *line.split()], **fields) == told
