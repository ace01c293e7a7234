"""`gpu-share explain` of what makes pods, and of pods that were never created."""

from typing import Any

import pytest

from tests.console.explained import OURS, Asked, explain, known, only, owned
from tests.console.objects import ago, denial, gpu, pod, state
from tests.console.stand_in import Object, StandIn, status_of

DEPLOYMENT = "apps/v1/namespaces/team-vision/deployments/resnet"
QUOTAS = f"{OURS}/resourcequotas"
EXCEEDED = (
    'pods "resnet-5d-x" is forbidden: exceeded quota: gpus, requested: requests.gpu-share.dev/vgpu=2, '
    "used: requests.gpu-share.dev/vgpu=8, limited: requests.gpu-share.dev/vgpu=8"
)


def quota(used: str, *, hard: str = "8") -> Object:
    resource = "requests.gpu-share.dev/vgpu"
    status = {"hard": {resource: hard, "cpu": "1"}, "used": {resource: used, "cpu": "1"}}
    return {"metadata": {"name": "gpus"}, "status": status}


def made_by(path: str, **said: Any) -> StandIn:
    """A cluster without pods, in which one object that makes them *said* this of itself."""
    on = known()
    only(on, path, **said)
    return on


@pytest.mark.parametrize(
    ("name", "path", "owner"),
    [
        ("deploy/resnet", "apps/v1/namespaces/team-vision/deployments/resnet", ("ReplicaSet", "resnet-5d")),
        ("resnet", "apps/v1/namespaces/team-vision/deployments/resnet", ("ReplicaSet", "resnet-5d")),
        ("job/train", "batch/v1/namespaces/team-vision/jobs/train", ("Job", "train")),
        ("statefulsets/db", "apps/v1/namespaces/team-vision/statefulsets/db", ("StatefulSet", "db")),
        ("sts/db", "apps/v1/namespaces/team-vision/statefulsets/db", ("StatefulSet", "db")),
        ("ds/agent", "apps/v1/namespaces/team-vision/daemonsets/agent", ("DaemonSet", "agent")),
        ("rs/resnet-5d", "apps/v1/namespaces/team-vision/replicasets/resnet-5d", ("ReplicaSet", "resnet-5d")),
        ("cj/train", "batch/v1/namespaces/team-vision/cronjobs/train", ("Job", "train-29461234")),
    ],
)
def test_what_makes_pods_stands_for_them(asked: Asked, name: str, path: str, owner: tuple[str, str]) -> None:
    other = owned(pod("other"), "ReplicaSet", "other-1")
    on = known(owned(pod("resnet-0"), *owner), owned(pod("resnet-1"), *owner), other)
    only(on, path)
    text = explain(asked, on, name)
    assert [line for line in text.splitlines() if line.startswith("Pod ")] == [
        f"Pod team-vision/{one}: Running on gpu-a for 5 min" for one in ("resnet-0", "resnet-1")
    ]


@pytest.mark.parametrize("name", ["po/resnet-0", "pod/resnet-0", "pods/resnet-0"])
def test_a_pod_has_the_names_that_kubectl_takes(asked: Asked, name: str) -> None:
    assert explain(asked, known(pod("resnet-0")), name).startswith("Pod team-vision/resnet-0: Running")


def test_a_denial_before_the_pods_is_over(asked: Asked) -> None:
    on = known(owned(pod("resnet-0"), "ReplicaSet", "resnet-5d"))
    only(on, DEPLOYMENT)
    on.lists[f"{OURS}/events"] = [denial("too much", at=ago(minutes=6))]
    assert "Not created" not in explain(asked, on, "deploy/resnet")
    on.lists[f"{OURS}/events"] = [denial("too much", at=ago(minutes=4))]
    assert "too much" in explain(asked, on, "deploy/resnet")
    on.raw["/apis/apps/v1/namespaces/team-vision/replicasets/resnet-5d"] = status_of(404, "not found")
    assert "too much" not in explain(asked, on, "deploy/resnet")


def test_without_pods_there_is_the_denial(asked: Asked) -> None:
    on = known()
    only(on, "apps/v1/namespaces/team-vision/deployments/resnet")
    on.lists[f"{OURS}/events"] = [denial('admission webhook "pods.gpu-share.dev" denied the request: too much')]
    text = explain(asked, on, "deployment/resnet")
    assert text.startswith("Deployment team-vision/resnet: no pods\n")
    assert 'ReplicaSet resnet-5d, 9 times: admission webhook "pods.gpu-share.dev" denied the request: too much' in text


def test_a_quota_that_is_used_up_explains_why_a_deployment_has_no_pods(asked: Asked) -> None:
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": EXCEEDED}
    on = made_by(DEPLOYMENT, status={"conditions": [condition]})
    on.lists[QUOTAS] = [quota("8")]
    text = explain(asked, on, "deployment/resnet")
    for line in (
        f"    ReplicaFailure: FailedCreate: {EXCEEDED}",
        "    what to do: the ResourceQuota of the namespace is used up: ask for less, delete a pod, or have it raised",
        "  Quotas",
        "    quota gpus: 8 of 8 requests.gpu-share.dev/vgpu: it is used up",
    ):
        assert line in text, text
    assert "cpu" not in text


def test_what_an_event_and_a_condition_say_alike_is_told_once(asked: Asked) -> None:
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": EXCEEDED}
    on = made_by(DEPLOYMENT, status={"conditions": [condition]})
    on.lists[f"{OURS}/events"] = [denial(EXCEEDED)]
    text = explain(asked, on, "deployment/resnet")
    assert "    ReplicaSet resnet-5d, 9 times: pods" in text
    assert text.count(EXCEEDED) == 1


@pytest.mark.parametrize(
    ("path", "said", "told"),
    [
        (DEPLOYMENT, {"spec": {"replicas": 0}}, "it asks for 0 replicas"),
        (
            "batch/v1/namespaces/team-vision/jobs/train",
            {
                "status": {
                    "conditions": [
                        {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}
                    ]
                }
            },
            "Failed: BackoffLimitExceeded: too often",
        ),
        ("batch/v1/namespaces/team-vision/jobs/train", {"spec": {"suspend": True}}, "it is suspended"),
        (
            "apps/v1/namespaces/team-vision/daemonsets/resnet",
            {"status": {"desiredNumberScheduled": 0}},
            "no node is one for its pods",
        ),
    ],
)
def test_an_object_without_pods_says_itself_why(asked: Asked, path: str, said: dict[str, Any], told: str) -> None:
    text = explain(asked, made_by(path, **said), path.rpartition("/")[2])
    assert f"    {told}" in text


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"spec": {"suspend": True}}, "  Not created\n    it is suspended\n"),
        (
            {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}},
            "no pods\n  State\n    Failed: BackoffLimitExceeded\n",
        ),
    ],
)
def test_a_job_without_pods_that_wants_none_is_not_called_denied(asked: Asked, said: dict[str, Any], told: str) -> None:
    on = made_by("batch/v1/namespaces/team-vision/jobs/train", **said)
    on.lists[f"{OURS}/events"] = [denial("too much", kind="Job", name="train")]
    text = explain(asked, on, "job/train")
    assert told in text
    assert "too much" not in text


def test_of_a_paused_deployment_it_is_said_that_it_is_paused(asked: Asked) -> None:
    text = explain(asked, made_by(DEPLOYMENT, spec={"replicas": 1, "paused": True}), "deploy/resnet")
    assert "  Not created\n    it is paused, and makes no pods of its template until kubectl rollout resume\n" in text
    on = known(owned(pod("resnet-0"), "ReplicaSet", "resnet-5d"))
    only(on, DEPLOYMENT, spec={"replicas": 1, "paused": True}, status={"replicas": 1})
    text = explain(asked, on, "deploy/resnet")
    assert "  State\n    it is paused: its template is not rolled out until kubectl rollout resume\n" in text
    assert "Not created" not in text


@pytest.mark.parametrize(("kind", "name"), [("StatefulSet", "resnet"), ("DaemonSet", "resnet"), ("Job", "resnet")])
def test_a_controller_of_its_own_name_is_found_and_one_with_a_longer_name_is_not(
    asked: Asked, kind: str, name: str
) -> None:
    on = made_by(f"{'batch' if kind == 'Job' else 'apps'}/v1/namespaces/team-vision/{kind.lower()}s/{name}")
    on.lists[f"{OURS}/events"] = [
        denial("too much", kind=kind, name=name),
        denial("not this one", name="resnet-big-5d"),
        denial("long ago", name="resnet-77", at=ago(hours=1)),
    ]
    text = explain(asked, on, name)
    assert f"    {kind} {name}, 9 times: too much" in text
    assert "not this one" not in text
    assert "long ago" not in text


@pytest.mark.parametrize(
    ("path", "kind", "name", "is_told"),
    [
        (DEPLOYMENT, "ReplicaSet", "resnet-5d", True), (DEPLOYMENT, "Deployment", "resnet", True),
        (DEPLOYMENT, "StatefulSet", "resnet-db", False), (DEPLOYMENT, "StatefulSet", "resnet", False),
        (DEPLOYMENT, "ReplicaSet", "resnet", False), (DEPLOYMENT, "Job", "resnet-1", False),
        ("batch/v1/namespaces/team-vision/cronjobs/train", "Job", "train-29461234", True),
        ("batch/v1/namespaces/team-vision/jobs/train", "Job", "train-29461234", False),
        ("apps/v1/namespaces/team-vision/statefulsets/db", "StatefulSet", "db-big", False),
    ],
)  # fmt: skip
def test_a_denial_is_told_of_what_made_the_pods_and_of_no_other_kind(
    asked: Asked, path: str, kind: str, name: str, *, is_told: bool
) -> None:
    on = made_by(path)
    on.lists[f"{OURS}/events"] = [denial("too much", kind=kind, name=name)]
    *_, plural, of = path.split("/")
    text = explain(asked, on, f"{plural}/{of}")
    assert (f"{kind} {name}, 9 times: too much" in text) is is_told, text


def test_pods_that_are_missing_beside_others_are_told(asked: Asked) -> None:
    on = known(owned(pod("resnet-0"), "ReplicaSet", "resnet-5d"))
    only(on, DEPLOYMENT)
    on.lists[f"{OURS}/events"] = [denial("too much")]
    text = explain(asked, on, "deployment/resnet")
    assert text.startswith("Deployment team-vision/resnet: 1 pod\n  Not created\n    ReplicaSet resnet-5d")
    assert "Pod team-vision/resnet-0: Running" in text


def test_of_a_pod_that_was_never_created_the_quotas_are_told(asked: Asked) -> None:
    on = made_by("")
    on.lists[QUOTAS] = [quota("8")]
    ran = asked(on, "explain", "-n", "team-vision", "train")
    assert ran.exit_code == 1
    assert (
        "one that was denied left nothing behind, and whoever created it was told why; quota gpus: 8 of 8" in ran.stderr
    )
    assert len(ran.stderr.splitlines()) == 1


RENAMED = "k8s.amazonaws.com/vgpu"


@pytest.mark.parametrize("resource", [RENAMED, "example.com/part", "example.com/part-mig-1g.10gb"])
@pytest.mark.parametrize("forbidden", [set(), {"configmaps"}], ids=["by file", "by nodes"])
def test_shares_of_another_name_have_quotas_and_are_asked_for_by_limits(
    asked: Asked, resource: str, forbidden: set[str]
) -> None:
    plain = resource.removesuffix("-mig-1g.10gb")
    on = known(pod("resnet-0", phase="Pending", on=""), state=state(gpu(resource=resource) if forbidden else gpu()))
    on.lists["/api/v1/namespaces/gpu-share/configmaps"][1]["data"] = {
        "_cluster.yaml": f"resourceNames: {{mps: {plain}}}\n"
    }
    on.forbidden = forbidden
    status = {"hard": {f"requests.{resource}": "8", "cpu": "1"}, "used": {f"requests.{resource}": "8"}}
    on.lists[QUOTAS] = [{"metadata": {"name": "gpus"}, "status": status}]
    (container,) = on.lists[f"{OURS}/pods"][0]["spec"]["containers"]
    container["resources"] = {"limits": {resource: "2", "cpu": "1", "rdma/hca": "1"}}
    text = explain(asked, on, "resnet-0")
    assert f"  Quotas\n    quota gpus: 8 of 8 requests.{resource}: it is used up\n" in text, text
    assert f"    limit of main: 2 x {resource}\n" in text
    assert "rdma" not in text


def test_quotas_that_may_not_be_read_are_named_with_the_right(asked: Asked) -> None:
    on = made_by(DEPLOYMENT)
    on.raw[QUOTAS] = status_of(403, 'resourcequotas is forbidden: User "viewer" cannot list resource "resourcequotas"')
    text = explain(asked, on, "deployment/resnet")
    assert "the right to list resourcequotas in namespace team-vision is missing" in text
