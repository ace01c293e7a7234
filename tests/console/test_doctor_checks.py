"""Each check of `gpu-share doctor` in a cluster in which it fails, and all of them in one in which all is well."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from console.doctor.installation import Attempt, Installation
from console.doctor.report import AFTER, BEFORE, findings
from console.objects import Pod
from console.seen import Denial, Unseen
from console.words import Shown
from policies.node_state import Ages, Fault, Gpu, MpsDaemon, Use
from tests.console.installations import ca, fragmented, installation, nodes, parsed, pods, policies, seen, webhook
from tests.console.objects import GIB, failed_gpu, gpu, part, pending, pod, state, tenant
from tests.docs.pages import ROOT, anchors

Made = Callable[[], Installation]


def with_node(*gpus: Gpu, **more: Any) -> Installation:
    return installation(seen(**nodes(state(*gpus, on="gpu-0", **more))))


def attempt(message: str, status: int = 500) -> Installation:
    return installation(attempt=Attempt(namespace="default", status=status, message=Shown(message)))


def parts(component: str, **status: Any) -> Installation:
    """An installation in which one part is as *status* says."""
    made = [part("gpu-0", one) for one in ("plugin", "mps", "webhook", "certs")]
    for one in made:
        if one["metadata"]["labels"]["app.kubernetes.io/component"] == component:
            one["status"] = {**one["status"], **status}
    return installation(seen(parts=tuple(parsed(one, Pod) for one in made)))


def with_volume(component: str, **volume: Any) -> Installation:
    made = [part("gpu-0", "plugin"), part("gpu-0", component)]
    made[1]["spec"]["volumes"] = [volume]
    made[0]["spec"]["volumes"] = [read_by("gpu-share-cluster-1")]
    return installation(seen(parts=tuple(parsed(one, Pod) for one in made)))


def read_by(name: str) -> dict[str, Any]:
    return {"name": "policies", "projected": {"sources": [{"configMap": {"name": name}}]}}


def waiting(reason: str) -> list[dict[str, Any]]:
    state = {"waiting": {"reason": reason, "message": "no such image"}}
    return [{"name": "main", "ready": False, "state": state}]


def late_daemon() -> Gpu:
    return gpu(mps_daemon=MpsDaemon(state="starting", since="2026-01-01T00:00:00Z", why="it has not answered yet"))


def with_hooks(change: Callable[[Any], Any]) -> Installation:
    made = webhook()
    return installation(webhook=msgspec.structs.replace(made, webhooks=tuple(map(change, made.webhooks))))


def two_drivers() -> Installation:
    one, other = state(gpu(), gpu(index=1), on="gpu-0"), state(gpu(), gpu(index=1), on="gpu-1")
    return installation(seen(**nodes(one, msgspec.structs.replace(other, driver="595.1"))))


def over() -> Installation:
    return with_node(gpu(tenant("a", 2, use=Use(memory_bytes=60 * GIB))), gpu(index=1))


def sliced() -> Installation:
    shared = gpu(tenant("a", 2), strategy="time-slicing", limits_enforced_by="")
    return with_node(shared, gpu(index=1))


DENIAL = Denial(namespace="team-vision", kind="ReplicaSet", name="r", message="gpu-share: no", count=1, last=None)
WRONG: list[tuple[str, str, str, Made]] = [
    ("kubernetes-version", "failure", "1.29.4, 1.30 is needed", lambda: installation(version=Shown("v1.29.4"))),
    ("apis", "failure", "does not serve admissionreg", lambda: installation(apis=frozenset({"resource.k8s.io/v1"}))),
    (
        "apis",
        "failure",
        "needs Kubernetes 1.36",
        lambda: installation(version=Shown("v1.35.0"), **policies(x="allocation: dra\n")),
    ),
    ("nodes-labelled", "warning", "no node has the label", lambda: installation(seen(nodes=()))),
    (
        "other-plugins",
        "warning",
        "gpu-0 advertises nvidia.com/gpu too",
        lambda: installation(seen(**nodes(state(gpu(), on="gpu-0"), allocatable={"nvidia.com/gpu": "2"}))),
    ),
    (
        "images",
        "failure",
        "ErrImagePull: no such image",
        lambda: parts("plugin", containerStatuses=waiting("ErrImagePull")),
    ),
    ("webhook-runs", "failure", "none of 1 webhook pods", lambda: parts("webhook", phase="Pending")),
    ("webhook-configured", "failure", "there is no Mutating", lambda: installation(webhook=None, has_webhook=False)),
    ("webhook-configured", "failure", "has no caBundle", lambda: installation(webhook=webhook(clientConfig={}))),
    (
        "webhook-configured",
        "failure",
        "holds no certificate",
        lambda: installation(webhook=webhook(clientConfig={"caBundle": b64encode(b"none").decode()})),
    ),
    ("webhook-answers", "failure", "x509: unknown", lambda: attempt('failed calling webhook: "x509: unknown"')),
    ("webhook-answers", "warning", "was admitted in namespace default", lambda: attempt("", 201)),
    (
        "certificates",
        "failure",
        "the CA expires at",
        lambda: installation(webhook=webhook(clientConfig={"caBundle": b64encode(ca(2)).decode()})),
    ),
    ("certificates", "failure", "webhook's certificate expired", lambda: installation(serving_certificate=ca(-1))),
    ("certificates", "failure", "holds no certificate", lambda: installation(serving_certificate=b"")),
    (
        "renewal",
        "failure",
        "CrashLoopBackOff",
        lambda: parts("certs", containerStatuses=waiting("CrashLoopBackOff")),
    ),
    ("policies-valid", "failure", "x.yaml:1", lambda: installation(**policies(x="strategi: mps\n"))),
    (
        "policies-in-force",
        "failure",
        "policy file broken: a.yaml",
        lambda: installation(ready={"w": "ready\npolicy file broken: a.yaml:3"}),
    ),
    (
        "policies-same",
        "warning",
        "webhook read gpu-share-cluster-2",
        lambda: with_volume("webhook", **read_by("gpu-share-cluster-2")),
    ),
    (
        "policies-same",
        "warning",
        "a restart for vgpusPerGpu",
        lambda: with_node(gpu(), restart_needed=("vgpusPerGpu",)),
    ),
    (
        "exempt-namespaces",
        "failure",
        "is called for batch, which is exempt",
        lambda: installation(**policies("exemptNamespaces: [kube-system, batch]\n")),
    ),
    (
        "resource-names",
        "failure",
        "lack example.com/vgpu",
        lambda: installation(**policies("resourceNames: {mps: example.com/vgpu}\n")),
    ),
    (
        "pipe-directory",
        "failure",
        "serves in /other",
        lambda: with_volume("mps", name="pipes", hostPath={"path": "/other"}),
    ),
    ("warn-mode", "warning", "lacks the label", lambda: installation(**policies(**{"team-vision": "mode: warn\n"}))),
    (
        "warn-mode",
        "warning",
        "does not say mode: warn",
        lambda: installation(namespaces={"a": {"gpu-share.dev/mode": "warn"}}),
    ),
    (
        "pod-security",
        "failure",
        "a enforces restricted, and says attach: pod (a.yaml:1)",
        lambda: installation(
            namespaces={"a": {"pod-security.kubernetes.io/enforce": "restricted"}}, **policies(a="mps: {attach: pod}\n")
        ),
    ),
    ("nodes-speak", "failure", "no part of gpu-share runs", lambda: installation(seen(**nodes(None)))),
    ("nodes-speak", "failure", "says nothing any more", lambda: with_node(gpu(), ages=Ages(health=99))),
    ("gpus-healthy", "failure", "XID 79; recovers by a reset", lambda: with_node(gpu(), failed_gpu())),
    ("mps-daemons", "failure", "it has not answered yet", lambda: with_node(late_daemon())),
    (
        "registered",
        "warning",
        "advertises 20 gpu-share.dev/vgpu, and its plugin has 10",
        lambda: with_node(gpu()),
    ),
    ("gpus-shared", "warning", "GPU 3 is in MIG mode", lambda: with_node(gpu(), skipped=("GPU 3 is in MIG mode",))),
    ("drivers", "warning", "595.1 on gpu-1", two_drivers),
    ("tenants-known", "warning", "no socket", lambda: with_node(gpu(), tenants_unknown="no socket")),
    (
        "pods-run",
        "warning",
        "team-vision/late is Pending: 1 Insufficient",
        lambda: installation(seen(**pods(pending("late", "0.4", "1 Insufficient")))),
    ),
    (
        "pods-run",
        "warning",
        "team-vision/p is Failed: UnexpectedAdmissionError",
        lambda: installation(seen(**pods(pod("p", phase="Failed", reason="UnexpectedAdmissionError")))),
    ),
    ("pods-admitted", "warning", "team-vision/ReplicaSet/r", lambda: installation(seen(denials=(DENIAL,)))),
    ("shares-fit", "warning", "0.5 of GPUs is free, the largest share that fits is 0.3", fragmented),
    ("shares-fit", "warning", "0.5 of GPUs is free, the largest share", lambda: fragmented(hidden=2)),
    (
        "numbers-agree",
        "warning",
        "team-vision/late: main was granted 4 of 10 vGPUs, and a GPU is divided into 20 now",
        lambda: installation(seen(**pods(pending("late", "0.4", "no room"))), **policies("vgpusPerGpu: 20\n")),
    ),
    ("within-share", "failure", "takes 60.0 GiB of its 28.0 GiB", over),
    ("within-share", "warning", "time-slicing limits no memory", sliced),
]


@pytest.mark.parametrize(("check", "status", "told", "made"), WRONG)
def test_a_check_finds_what_it_is_for(check: str, status: str, told: str, made: Made) -> None:
    (found,) = (one for one in findings(made(), AFTER) if one.check == check)
    assert (found.status, told in " ".join(found.found)) == (status, True), found
    assert found.hint


def test_every_check_is_among_these() -> None:
    assert {one[0] for one in WRONG} == {check.name for _, checks in AFTER for check in checks}


def test_where_all_is_well_nothing_is_found() -> None:
    assert [one for one in findings(installation(), AFTER) if one.status != "ok"] == []


def test_before_an_installation_the_rights_to_install_are_looked_at() -> None:
    found = findings(installation(rights={"namespaces": True, "daemonsets": False}), BEFORE)
    assert [(one.check, one.found) for one in found if one.status == "failure"] == [
        ("rights", ("you may not create daemonsets",))
    ]


@pytest.mark.parametrize("field", ["version", "apis", "webhook", "attempt", "serving_certificate", "policies"])
def test_what_cannot_be_seen_is_unknown_with_the_right_by_which_it_could(field: str) -> None:
    missing = {field: Unseen(what=field, why="it is forbidden", right="get it")}
    value = {field: None} if field != "policies" else {"policies": None, "policy_problems": None}
    found = [one for one in findings(installation(unseen=missing, **value), AFTER) if one.status != "ok"]
    assert found
    assert {(one.status, one.right) for one in found} == {("unknown", "get it")}


def test_a_fault_of_mps_is_told_once() -> None:
    fault = Fault(source="mps", why="no daemon", since="2026-01-01T00:00:00Z")
    found = findings(with_node(gpu(healthy=False, faults=(fault,)), gpu(index=1)), AFTER)
    assert [one.check for one in found if "no daemon" in " ".join(one.found)] == ["mps-daemons"]


def test_every_check_leads_to_a_section_of_the_documents() -> None:
    for _, checks in (*AFTER, *BEFORE):
        for check in checks:
            page, _, anchor = check.page.partition("#")
            text = (ROOT / "docs" / page).read_text()
            assert not anchor or anchor in anchors(text), check.page
