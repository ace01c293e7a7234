"""What people read: warnings and denials, where they meet them."""

from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, eventually
from tests.cluster.image import ROOT
from tests.cluster.pods import VLLM, Place, container, pod

EXAMPLES = ROOT / "policies" / "examples"
pytestmark = pytest.mark.usefixtures("installed")
GREEDY = {"metadata": {"labels": {"app": "greedy"}, "annotations": {"gpu-share": "0.8"}}, "spec": pod(None)["spec"]}


@pytest.fixture
def vision(cluster: Cluster) -> Place:
    """Give the namespace whose policy allows half a GPU."""
    return Place.make(cluster, "team-vision")


def test_kubectl_prints_each_warning_on_a_line(place: Place) -> None:
    vllm = container(image=VLLM, args=["--gpu-memory-utilization", "0.9"])
    assert place.apply(pod("0.25", vllm)).splitlines() == [
        'Warning: gpu-share: "main": 0.25 of a GPU is 2.5 of 10 vGPUs, rounded up to 3',
        'Warning: gpu-share: "main": --gpu-memory-utilization was "0.9", more than the share: lowered',
    ]


@pytest.mark.parametrize(
    ("example", "code"),
    [
        ("5-too-large", "ShareAboveMaximum"),
        ("6-malformed", "ShareMalformed"),
        ("7-all-gpus", "ReservedEnvironment"),
    ],
)
def test_kubectl_says_why_an_example_is_denied(vision: Place, example: str, code: str) -> None:
    denied = vision.cluster.attempt("kubectl apply -f -", stdin=Path(EXAMPLES, f"{example}.yaml").read_text())
    assert denied.returncode == 1
    assert 'admission webhook "pods.gpu-share.dev" denied the request' in denied.stderr
    assert f"({code})" in denied.stderr.splitlines()[0]


def test_the_user_of_a_deployment_reads_the_denial_in_an_event(vision: Place) -> None:
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "greedy"}}, "template": GREEDY}
    vision.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "greedy"}, "spec": spec})
    (message, *_) = eventually(lambda: vision.events("FailedCreate", "ReplicaSet"), what="an event of the ReplicaSet")
    assert 'admission webhook "pods.gpu-share.dev" denied the request' in message
    assert "0.8" in message
    assert "team-vision" in message
    vision.empty()


def test_the_user_of_a_job_reads_the_denial_in_an_event(vision: Place) -> None:
    template = GREEDY | {"spec": GREEDY["spec"] | {"restartPolicy": "Never"}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "greedy-job"}, "spec": {"template": template}}
    vision.apply(job)
    (message, *_) = eventually(lambda: vision.events("FailedCreate", "Job"), what="an event of the Job")
    assert 'admission webhook "pods.gpu-share.dev" denied the request' in message
    vision.empty()


def test_where_the_policy_only_warns_a_pod_is_created_and_its_user_warned(cluster: Cluster) -> None:
    trial = Place.make(cluster, "on-trial", {"gpu-share.dev/mode": "warn"})
    answer = trial.create(pod("0.2", container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}])), dry_run=True)
    assert answer.ok, answer.message
    assert any("NVIDIA_VISIBLE_DEVICES" in one for one in answer.warnings)
    assert "gpu-share.dev/grant" not in answer.body["metadata"]["annotations"]
