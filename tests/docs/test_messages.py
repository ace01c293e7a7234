"""The messages by which docs/troubleshooting.md finds a cause are said by a program: ours, or one that is named."""

import re

import pytest

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
OURS = "\n".join(
    path.read_text()
    for room in ("program", "policies", "webhook", "plugin", "certs", "console", "manifests/base")
    for path in (ROOT / room).rglob("*")
    if path.suffix in (".py", ".yaml")
)
# Seen on Kubernetes 1.36, in CUDA's documents, or in vLLM.
OTHERS = {
    'admission webhook "pods.gpu-share.dev" denied the request',
    "ValidatingAdmissionPolicy 'gpu-share'",
    "ValidatingAdmissionPolicy 'gpu-share-changes'",
    "ValidatingAdmissionPolicy 'gpu-share-lockdown'",
    "violates PodSecurity",
    "hostIPC=true",
    'admission webhook "validate.kyverno.svc-fail" denied the request',
    'admission webhook "validation.gatekeeper.sh" denied the request',
    'failed calling webhook "pods.gpu-share.dev"',
    'no endpoints available for service "gpu-share-webhook"',
    "connect: connection refused",
    "context deadline exceeded",
    "timeout",
    "x509: …",
    "Insufficient gpu-share.dev/vgpu",
    "Insufficient",
    "didn't match Pod's node affinity/selector",
    "untolerated taint",
    "cannot allocate all claims",
    "DRA driver gpu-share.dev is not registered",
    "no relationship found between node",
    "no healthy devices present; cannot allocate unhealthy devices",
    "previously allocated devices are no longer healthy",
    "out of memory",
    "is less than desired GPU memory utilization",
    "CUDA-capable device(s) is/are busy or unavailable",
    "an illegal memory access was encountered",
    "no CUDA-capable device is detected",
    'secret "gpu-share-webhook-tls" not found',
    "x509: certificate signed by unknown authority",
    "x509: certificate has expired or is not yet valid",
    "x509: certificate is valid for …, not gpu-share-webhook.gpu-share.svc",
    "immutable",
    "ContainerCreating",
    "FailedCreate",
    "FailedToCreateWorkerPod",
    "Pending",
    "Failed",
    "failed calling webhook",
    "UnexpectedAdmissionError",
    "kubectl apply",
    "x509",
}
MESSAGES = sorted(
    {text for cell in re.findall(r"^\| (.*?) \|", PAGE, re.MULTILINE) for text in re.findall("`(.*?)`", cell)}
)


def test_the_page_has_messages_of_ours_and_of_others() -> None:
    assert set(MESSAGES) >= OTHERS
    assert len(set(MESSAGES) - OTHERS) >= 5


@pytest.mark.parametrize("message", sorted(set(MESSAGES) - OTHERS))
def test_a_message_is_one_of_ours(message: str) -> None:
    assert all(part.strip(" ,") in OURS for part in message.split("…"))
