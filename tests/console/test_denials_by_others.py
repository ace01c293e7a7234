"""Denials by whoever does not name us, and those that operators tell by reasons of their own."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from console.api_server import ApiServer
from console.look import look
from console.owners import KINDS, MORE_KINDS
from console.page.differences import differences
from console.seen import DENIED_PODS
from tests.console.explained import OURS as NAMESPACE
from tests.console.explained import Asked, explain, known, only
from tests.console.objects import cluster, denial, gpu, state
from tests.console.stand_in import Object, Reply, StandIn, status_of
from webhook.preview.kinds import known_kind

Connected = Callable[[StandIn], ApiServer]
A = state(gpu(), on="gpu-a")
OURS = 'admission webhook "pods.gpu-share.dev" denied the request: too much'
KYVERNO = (
    'admission webhook "validate.kyverno.svc-fail" denied the request: resource Pod/team-vision/resnet-5d-x was '
    "blocked due to the following policies disallow-host-namespaces: host-namespaces: Sharing the host namespaces is "
    "disallowed."
)
GATEKEEPER = (
    'admission webhook "validation.gatekeeper.sh" denied the request: [psp-host-namespace] Sharing the host namespace '
    "is not allowed: resnet-5d-x"
)
OPENSHIFT = (
    'pods "resnet-5d-" is forbidden: unable to validate against any security context constraint: '
    "[provider restricted-v2: .spec.hostIPC: Invalid value: true: Host IPC is not allowed to be used]"
)
POD_SECURITY = (
    'pods "resnet-5d-x" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostIPC=true), hostPath '
    'volumes (volume "mps")'
)
SPELLED = (
    *("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "ReplicationController", "RayCluster"),
    *("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob"),
)
REPLICA_SET = "/apis/apps/v1/namespaces/team-vision/replicasets/resnet-5d"


def template(limits: dict[str, str] | None = None, annotations: dict[str, str] | None = None) -> Object:
    container = {"name": "main", "image": "busybox:1.37", "resources": {"limits": limits}}
    return {"metadata": {"creationTimestamp": None, "annotations": annotations}, "spec": {"containers": [container]}}


SHARED = template(annotations={"gpu-share": "0.2"})


def answer(spec: Any) -> Reply:
    return 200, msgspec.json.encode({"metadata": {"uid": "1"}, "spec": spec})


def told(event: Object, reason: str, api_version: str = "") -> Object:
    event["reason"] = reason
    event["involvedObject"]["apiVersion"] = api_version
    return event


@pytest.mark.parametrize("message", [KYVERNO, GATEKEEPER, OPENSHIFT, POD_SECURITY])
def test_a_denial_that_does_not_name_us_is_told_where_the_controller_makes_pods_with_a_share(
    connected: Connected, message: str
) -> None:
    on = cluster(A, events=(denial(message),))
    on.raw[REPLICA_SET] = answer({"replicas": 2, "template": SHARED})
    (found,) = look(connected(on)).denials
    assert found.message == message


@pytest.mark.parametrize(
    "made",
    [
        template(),
        template(annotations={"gpu-share.dev/framework": "none"}),
        template({"nvidia.com/gpu": "1"}),
        template({"gpu-share.dev/vgpu": "0"}),
        {"spec": 5},
        None,
    ],
)
def test_a_denial_that_does_not_name_us_is_not_told_of_pods_without_a_share(connected: Connected, made: Any) -> None:
    on = cluster(A, events=(denial(KYVERNO),))
    on.raw[REPLICA_SET] = answer({"replicas": 2, "template": made})
    seen = look(connected(on))
    assert (seen.denials, seen.unseen) == ((), ())


@pytest.mark.parametrize("reply", [status_of(404, "not found"), answer({"replicas": 0, "template": SHARED})])
def test_a_denial_that_does_not_name_us_is_not_told_where_nobody_wants_pods(connected: Connected, reply: Reply) -> None:
    on = cluster(A, events=(denial(KYVERNO), denial(KYVERNO, kind="CloneSet")))
    on.raw[REPLICA_SET] = reply
    seen = look(connected(on))
    assert (seen.denials, seen.unseen) == ((), ())


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (status_of(403, "forbidden"), "forbidden"),
        (status_of(429, "too many requests"), "too many requests"),
        ((200, b"[]"), ""),
        ((200, b"{"), ""),
    ],
)
def test_where_a_template_cannot_be_seen_that_is_told(connected: Connected, reply: Reply, why: str) -> None:
    on = cluster(A, events=(denial(KYVERNO),))
    on.raw[REPLICA_SET] = reply
    seen = look(connected(on))
    (hidden,) = seen.unseen
    assert hidden.what.startswith(DENIED_PODS)
    assert hidden.why.startswith("whether pods of 1 controller that were not created have a share: ")
    assert why in hidden.why
    assert hidden.right == ("get their controllers" if reply[0] == 403 else "")


@pytest.mark.parametrize("resource", ["gpu-share.dev/vgpu", "gpu-share.dev/gpu", "example.com/part"])
def test_a_share_is_asked_for_by_a_limit_too_as_the_nodes_call_it(connected: Connected, resource: str) -> None:
    on = cluster(state(gpu(resource="example.com/part"), on="gpu-a"), events=(denial(KYVERNO),))
    on.raw[REPLICA_SET] = answer({"template": template({"cpu": "1", resource: "2"})})
    assert len(look(connected(on)).denials) == 1


@pytest.mark.parametrize(
    ("kind", "reason", "path", "spec"),
    [
        (
            "RayCluster",
            "FailedToCreateHeadPod",
            "ray.io/v1/namespaces/team-vision/rayclusters/made",
            {"headGroupSpec": {"template": SHARED}},
        ),
        (
            "RayCluster",
            "FailedToCreateWorkerPod",
            "ray.io/v1alpha1/namespaces/team-vision/rayclusters/made",
            {"headGroupSpec": {"template": template()}, "workerGroupSpecs": [{"template": SHARED}]},
        ),
        (
            "PyTorchJob",
            "FailedCreatePod",
            "kubeflow.org/v1/namespaces/team-vision/pytorchjobs/made",
            {"pytorchReplicaSpecs": {"Master": {"template": template()}, "Worker": {"template": SHARED}}},
        ),
        (
            "Job",
            "FailedCreate",
            "batch.volcano.sh/v1alpha1/namespaces/team-vision/jobs/made",
            {"tasks": [{"template": SHARED}]},
        ),
    ],
)
@pytest.mark.parametrize("message", [OURS, KYVERNO])
def test_denials_of_pods_that_operators_create_themselves_are_told(  # noqa: PLR0917 - of a table
    connected: Connected, kind: str, reason: str, path: str, spec: Any, message: str
) -> None:
    version = path.partition("/namespaces/")[0]
    on = cluster(A, events=(told(denial(message, kind=kind, name="made"), reason, version),))
    on.raw["/apis/batch/v1/namespaces/team-vision/jobs/made"] = status_of(404, "it is another kind of Job")
    on.raw[f"/apis/{path}"] = answer(spec)
    (found,) = look(connected(on)).denials
    assert (found.kind, found.name, found.api_version) == (kind, "made", version)
    on.raw[f"/apis/{path}"] = status_of(404, "not found")
    assert look(connected(on)).denials == ()


def test_events_of_other_reasons_are_not_asked_for(connected: Connected) -> None:
    events = (told(denial(OURS), "FailedScheduling"), told(denial(OURS, name="b"), "FailedCreate"))
    assert [one.name for one in look(connected(cluster(A, events=events))).denials] == ["b"]


def test_at_most_32_controllers_are_asked_and_those_that_name_us_come_first(connected: Connected) -> None:
    ours = tuple(denial(OURS, name=f"z-{number:02}") for number in range(20))
    others = tuple(denial(KYVERNO, name=f"a-{number:02}") for number in range(20))
    on = cluster(A, events=ours + others)
    for one in (*ours, *others):
        path = REPLICA_SET.replace("resnet-5d", one["involvedObject"]["name"])
        on.raw[path] = answer({"template": SHARED})
    seen = look(connected(on))
    found = [one.name for one in seen.denials]
    assert found == [f"a-{number:02}" for number in range(12)] + [f"z-{number:02}" for number in range(20)]
    assert sum("/replicasets/" in path for path in on.asked) == 32
    (hidden,) = seen.unseen
    assert hidden.why.endswith("pods of 8 controllers that were not created have a share: at most 32 are looked at")


def test_controllers_that_a_quota_holds_back_keep_no_other_from_being_looked_at(connected: Connected) -> None:
    quota = 'pods "a" is forbidden: exceeded quota: cpu, requested: requests.cpu=1, used: requests.cpu=9'
    on = cluster(A, events=(*(denial(quota, name=f"a-{number:02}") for number in range(40)), denial(KYVERNO)))
    on.raw[REPLICA_SET] = answer({"template": SHARED})
    assert [one.name for one in look(connected(on)).denials] == ["resnet-5d"]
    assert sum("/replicasets/" in path for path in on.asked) == 32


def test_the_templates_are_where_preview_finds_them() -> None:
    for name, kind in (*KINDS.items(), *MORE_KINDS.items()):
        spelled = next(one for one in SPELLED if one.lower() == name)
        found = known_kind(kind.version, spelled)
        assert found is not None
        assert found.paths == kind.templates


def test_what_an_operator_was_told_is_explained_with_what_to_do(asked: Asked) -> None:
    on = known()
    only(on, "ray.io/v1/namespaces/team-vision/rayclusters/ray", spec={"headGroupSpec": {"template": SHARED}})
    event = denial(GATEKEEPER, kind="RayCluster", name="ray")
    on.lists[f"{NAMESPACE}/events"] = [told(event, "FailedToCreateHeadPod", "ray.io/v1")]
    text = explain(asked, on, "raycluster/ray")
    assert f"RayCluster ray, 9 times: {GATEKEEPER}" in text
    assert "what to do: where its rule forbids hostIPC or hostPath, the policy must say mps: {attach: node}" in text


@pytest.mark.parametrize("message", [KYVERNO, GATEKEEPER, OPENSHIFT])
def test_what_to_do_about_rules_for_pods_of_others_is_explained(asked: Asked, message: str) -> None:
    on = known()
    only(on, REPLICA_SET.removeprefix("/apis/"))
    on.lists[f"{NAMESPACE}/events"] = [denial(message)]
    text = explain(asked, on, "rs/resnet-5d")
    assert text.count("what to do: ") == 1
    assert "the policy must say mps: {attach: node}" in text


def test_a_denial_that_cannot_be_judged_hides_no_node_that_falls_silent(connected: Connected) -> None:
    on = cluster(A, events=(denial(KYVERNO),))
    on.raw[REPLICA_SET] = status_of(403, "forbidden")
    seen = look(connected(on))
    assert seen.unseen
    silent = tuple(msgspec.structs.replace(one, state=None) for one in seen.nodes)
    (change,) = differences(seen, msgspec.structs.replace(seen, nodes=silent))
    assert change.what.startswith("node gpu-a says nothing any more")


@pytest.mark.parametrize(("created", "told"), [(1, 1), (2, 0)])
def test_a_denial_is_over_where_the_controller_counts_all_its_pods(
    connected: Connected, created: int, told: int
) -> None:
    on = cluster(A, events=(denial(KYVERNO), denial(OURS, name="ours")))
    counted = {"metadata": {"uid": "1"}, "spec": {"replicas": 2, "template": SHARED}, "status": {"replicas": created}}
    on.raw[REPLICA_SET] = on.raw[REPLICA_SET.replace("resnet-5d", "ours")] = (200, msgspec.json.encode(counted))
    assert len(look(connected(on)).denials) == 2 * told
