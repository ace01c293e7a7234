"""Which denials are told: of controllers that are there, make pods with a share, and have made none since."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from console.api_server import ApiServer
from console.look import look
from tests.console.explained import owned
from tests.console.objects import cluster, denial, gpu, pod, state, tenant
from tests.console.stand_in import Reply, StandIn, status_of

Connected = Callable[[StandIn], ApiServer]
A = state(gpu(tenant("resnet-0", 2)), on="gpu-a")
OURS = 'admission webhook "pods.gpu-share.dev" denied the request: too much'
TOO_LATE = '{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}'
REPLICA_SET = "/apis/apps/v1/namespaces/team-vision/replicasets/resnet-5d"


@pytest.mark.parametrize(("seconds", "is_there"), [(61, True), (60, True), (59, False)])
def test_a_denial_is_over_once_a_pod_of_the_controller_was_created(
    connected: Connected,
    seconds: int,
    is_there: bool,  # noqa: FBT001 - of a table
) -> None:
    now = datetime.now(UTC)
    one = owned(pod("resnet-0"), "ReplicaSet", "resnet-5d")
    one["metadata"]["creationTimestamp"] = (now - timedelta(seconds=seconds)).isoformat(timespec="seconds")
    events = (denial(OURS, at=(now - timedelta(seconds=60)).isoformat(timespec="seconds")),)
    assert bool(look(connected(cluster(A, events=events, pods=(one,)))).denials) is is_there


@pytest.mark.parametrize(
    ("reply", "is_there"),
    [
        (status_of(404, "not found"), False),
        (status_of(403, "forbidden"), True),
        ((200, b'{"metadata": {"uid": "1"}, "spec": {"replicas": 2}}'), True),
        ((200, b'{"metadata": {"uid": "1"}, "spec": {"replicas": 0}}'), False),
        ((200, b'{"metadata": {"uid": "2"}, "spec": {"replicas": 2}}'), False),
    ],
)
def test_a_denial_is_over_with_its_controller(
    connected: Connected,
    reply: Reply,
    is_there: bool,  # noqa: FBT001 - of a table
) -> None:
    one = denial(OURS)
    one["involvedObject"]["uid"] = "1"
    on = cluster(A, events=(one,))
    on.raw[REPLICA_SET] = reply
    seen = look(connected(on))
    assert bool(seen.denials) is is_there
    assert seen.unseen == ()


@pytest.mark.parametrize(
    ("said", "is_there"),
    [
        ('{"spec": {"suspend": false}}', True),
        ('{"spec": {"suspend": true}}', False),
        ('{"status": {"failed": 7, "conditions": [{"type": "FailureTarget", "status": "True"}]}}', False),
        ('{"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}}', False),
        ('{"status": {"conditions": [{"type": "Complete", "status": "True"}]}}', False),
        ('{"status": {"conditions": [{"type": "Complete", "status": "False"}]}}', True),
        # For want of a pod: that all were denied is why it failed.
        (f'{{"status": {{"conditions": [{TOO_LATE}]}}}}', True),
        (f'{{"status": {{"failed": 1, "conditions": [{TOO_LATE}]}}}}', False),
    ],
)
def test_a_job_that_is_suspended_or_over_wants_no_pods_and_none_of_it_is_denied(
    connected: Connected,
    said: str,
    is_there: bool,  # noqa: FBT001 - of a table
) -> None:
    on = cluster(A, events=(denial(OURS, kind="Job", name="train"),))
    on.raw["/apis/batch/v1/namespaces/team-vision/jobs/train"] = (200, said.encode())
    assert bool(look(connected(on)).denials) is is_there


@pytest.mark.parametrize("said", ['{"runPolicy": {"suspend": true}}', '{"suspend": true}'])
def test_a_job_of_a_framework_that_is_suspended_wants_no_pods(connected: Connected, said: str) -> None:
    on = cluster(A, events=(denial(OURS, kind="PyTorchJob", name="train"),))
    on.raw["/apis/kubeflow.org/v1/namespaces/team-vision/pytorchjobs/train"] = (200, f'{{"spec": {said}}}'.encode())
    assert look(connected(on)).denials == ()


def test_a_controller_of_a_kind_that_is_not_known_is_not_asked_for(connected: Connected) -> None:
    on = cluster(A, events=(denial(OURS, kind="CloneSet"),))
    assert len(look(connected(on)).denials) == 1
    assert not any("cloneset" in path.lower() for path in on.asked)


def test_a_denial_of_vgpus_of_another_vendor_is_none_of_shares(connected: Connected) -> None:
    quota = 'pods "train-x" is forbidden: exceeded quota: q, requested: volcano.sh/vgpu-number=1'
    on = cluster(A, events=(denial(quota),))
    template = '{"spec": {"containers": [{"name": "a", "resources": {"limits": {"volcano.sh/vgpu-number": "1"}}}]}}'
    on.raw[REPLICA_SET] = (200, f'{{"spec": {{"replicas": 2, "template": {template}}}}}'.encode())
    assert look(connected(on)).denials == ()
