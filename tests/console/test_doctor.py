"""`gpu-share doctor` against a stand-in for an API server: what it asks, what it says, and with which exit code."""

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from tests.console.installations import DENIED, ca
from tests.console.objects import cluster, gpu, part, state, toolkit
from tests.console.stand_in import Object, StandIn, status_of
from tests.manifests.admission import BASE

Asked = Callable[..., Result]
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_HOOKS = f"{_ADMISSION}/mutatingwebhookconfigurations/gpu-share"
_DRA = "/apis/resource.k8s.io/v1"
_SECRET = "/api/v1/namespaces/gpu-share/secrets/gpu-share-webhook-tls"  # noqa: S105 - a path
_PODS = "/api/v1/namespaces/default/pods"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_READY = "/api/v1/namespaces/gpu-share/pods/https:gpu-share-webhook-gpu-a:8443/proxy/readyz"


def installed() -> StandIn:
    """A cluster in which gpu-share is installed, and all is well."""
    known = cluster(state(gpu(), gpu(index=1)))
    known.lists["/api/v1/namespaces/gpu-share/pods"] += [part("gpu-a", one) for one in ("mps", "webhook", "certs")]
    files = {"_default.yaml": "", "team-vision.yaml": "share: {maximum: '0.5'}\n"}
    known.lists["/api/v1/namespaces/gpu-share/configmaps"] = [
        {"metadata": {"name": "gpu-share-policies"}, "data": files},
        {"metadata": {"name": "gpu-share-cluster"}, "data": {"_cluster.yaml": ""}},
        {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "x"}},
    ]
    known.lists["/api/v1/namespaces"] = [{"metadata": {"name": name}} for name in ("default", "kube-system")]
    known.lists["/api/v1/pods"] = [toolkit("v1.17.8-ubuntu20.04")]
    known.lists[f"{_ADMISSION}/validatingadmissionpolicies"] = of_kind("ValidatingAdmissionPolicy")
    known.lists[f"{_ADMISSION}/validatingadmissionpolicybindings"] = of_kind("ValidatingAdmissionPolicyBinding")
    (hooks,) = of_kind("MutatingWebhookConfiguration")
    bundle = {"caBundle": b64encode(ca()).decode()}
    trusted = [{**one, "clientConfig": {**one["clientConfig"], **bundle}} for one in hooks["webhooks"]]
    groups = ("admissionregistration.k8s.io/v1", "resource.k8s.io/v1")
    say(known, "/version", {"gitVersion": "v1.36.2"})
    say(known, "/apis", {"groups": [{"versions": [{"groupVersion": one}]} for one in groups]})
    say(known, _HOOKS, {**hooks, "webhooks": trusted})
    say(known, _SECRET, {"data": {"tls.crt": b64encode(ca(30)).decode(), "tls.key": "c2VjcmV0"}})
    known.raw[_READY] = (200, b"ready\n")
    known.posted[_PODS] = status_of(403, DENIED)
    return known


@pytest.mark.parametrize("name", ["gpu-share-policies", "gpu-share-cluster"])
def test_a_config_map_without_which_no_pod_starts_is_missed(asked: Asked, name: str) -> None:
    known = installed()
    path = "/api/v1/namespaces/gpu-share/configmaps"
    known.lists[path] = [one for one in known.lists[path] if one["metadata"]["name"] != name]
    ran = asked(known, "doctor")
    assert f"✗ policy files are valid\n    there is no ConfigMap gpu-share/{name}\n" in ran.stdout
    assert ran.exit_code == 1


def of_kind(kind: str) -> list[Object]:
    return [one for one in BASE if one["kind"] == kind]


def say(known: StandIn, path: str, content: Any) -> None:
    known.raw[path] = (200, json.dumps(content).encode())


def test_an_installation_in_which_all_is_well_has_a_line_for_each_check(asked: Asked) -> None:
    ran = asked(installed(), "doctor")
    assert ran.exit_code == 0, ran.stdout
    assert ran.stdout.startswith("here at http://127.0.0.1:")
    lines = [line for line in ran.stdout.splitlines() if line.startswith("✓ ")]
    assert len(lines) >= 25
    assert not {"!", "✗", "?"} & {line[:1] for line in ran.stdout.splitlines()}
    unused = [line for line in ran.stdout.splitlines() if line.startswith("- ")]
    assert "- the scheduler knows the GPUs that it allocates: no node has GPUs that are allocated by DRA" in unused
    counted = f"{len(lines)} in order, {len(unused)} with nothing to judge"
    assert ran.stdout.endswith(f"{len(lines) + len(unused)} checks: {counted}\n")


def test_a_failure_has_its_reason_a_hint_and_a_page_and_ends_with_1(asked: Asked) -> None:
    known = installed()
    known.posted[_PODS] = status_of(500, 'failed calling webhook "pods.gpu-share.dev": x509: unknown authority')
    ran = asked(known, "doctor")
    assert ran.exit_code == 1
    begin = ran.stdout.index("✗ it answers the API server")
    assert ran.stdout[begin:].splitlines()[:4] == [
        "✗ it answers the API server",
        '    failed calling webhook "pods.gpu-share.dev": x509: unknown authority',
        "    hint: read the end of the message: it says why the webhook did not answer",
        "    see docs/troubleshooting.md#the-webhook-cannot-be-called",
    ]


def test_a_pod_is_tried_and_none_is_created(asked: Asked) -> None:
    known = installed()
    asked(known, "doctor")
    assert [path for path, _ in known.sent] == [f"{_PODS}?dryRun=All"]


def test_what_may_not_be_seen_is_no_failure(asked: Asked) -> None:
    known = installed()
    known.raw[_SECRET] = status_of(403, 'secrets is forbidden: User "viewer" cannot get resource "secrets"')
    known.posted[_PODS] = status_of(403, 'pods is forbidden: User "viewer" cannot create resource "pods"')
    ran = asked(known, "doctor", "-o", "json")
    assert ran.exit_code == 0
    found = {one["check"]: one for one in json.loads(ran.stdout)}
    assert found["certificates"]["status"] == found["webhook-answers"]["status"] == "unknown"
    assert found["certificates"]["right"] == "get secrets in namespace gpu-share"
    assert found["webhook-answers"]["right"] == "create pods in namespace default"


def test_an_api_server_that_does_not_answer_is_a_failure_and_one_sentence(asked: Asked) -> None:
    ran = asked(installed(), "doctor", "--context", "nowhere")
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr.startswith("gpu-share doctor: no answer from http://127.0.0.1:1: ")
    assert ran.stderr.count("\n") == 1


def test_a_cluster_without_gpu_share_is_one_sentence_and_no_list_of_checks(asked: Asked) -> None:
    known = installed()
    known.raw[_HOOKS] = status_of(404, "not found")
    ran = asked(known, "doctor")
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr.startswith(
        "gpu-share doctor: gpu-share is not installed in this cluster, here at http://127.0.0.1:"
    )
    known.lists["/api/v1/namespaces"].append({"metadata": {"name": "gpu-share"}})
    assert "there is no MutatingWebhookConfiguration gpu-share" in asked(known, "doctor").stdout


@pytest.mark.parametrize(
    ("status", "said"), [(500, "etcdserver: request timed out"), (504, "Timeout: not in time"), (502, "")]
)
def test_a_fault_of_the_api_server_itself_is_none_of_the_webhook(
    shown: Callable[..., Any], status: int, said: str
) -> None:
    known = installed()
    known.posted[_PODS] = status_of(status, said) if said else (status, b"<html>bad gateway</html>")
    (found,) = (one for one in shown(known, "doctor") if one["check"] == "webhook-answers")
    assert (found["status"], found["found"]) == ("unknown", [said or f"HTTP {status}"])


def test_who_is_not_signed_in_is_told_so(asked: Asked) -> None:
    known = installed()
    known.raw["/version"] = status_of(401, "Unauthorized")
    ran = asked(known, "doctor")
    assert (ran.exit_code, ran.stderr) == (
        1,
        "gpu-share doctor: Unauthorized: sign in again, or check the user of the kubeconfig\n",
    )


def test_without_the_right_to_ask_nodes_nothing_is_said_of_their_gpus(shown: Callable[..., Any]) -> None:
    known = installed()
    known.forbidden = {"pods/proxy"}
    found = {one["check"]: one for one in shown(known, "doctor")}
    names = ("nodes-speak", "gpus-healthy", "mps-daemons", "registered", "compute-mode", "within-share", "with-share")
    assert {(found[name]["status"], found[name]["right"]) for name in names} == {
        ("unknown", "get pods/proxy in namespace gpu-share")
    }


def test_a_key_is_nowhere_in_what_is_shown(asked: Asked) -> None:
    assert "c2VjcmV0" not in asked(installed(), "doctor", "-o", "json").stdout


def test_a_broken_policy_is_told_with_its_line(shown: Callable[..., Any]) -> None:
    known = installed()
    known.lists["/api/v1/namespaces/gpu-share/configmaps"][0]["data"]["team-vision.yaml"] = "\nshare: {maximum: 7.5}\n"
    known.raw[_READY] = (200, b"ready\npolicy file broken: team-vision.yaml:2: \x1b[2J\n")
    found = {one["check"]: one for one in shown(known, "doctor")}
    (told,) = found["policies-valid"]["found"]
    assert told.startswith("ConfigMap gpu-share/gpu-share-policies/team-vision.yaml:2: share.maximum: expected a share")
    assert found["policies-in-force"]["found"] == [
        "gpu-share-webhook-gpu-a: policy file broken: team-vision.yaml:2: ?[2J"
    ]


def test_a_policy_file_of_the_cluster_that_is_not_utf_8_is_told(shown: Callable[..., Any]) -> None:
    known = installed()
    files = {"team-vision.yaml": b64encode(b"mode: \xff").decode()}
    known.lists["/api/v1/namespaces/gpu-share/configmaps"][0]["binaryData"] = files
    (told,) = {one["check"]: one for one in shown(known, "doctor")}["policies-valid"]["found"]
    assert told.startswith("ConfigMap gpu-share/gpu-share-policies/team-vision.yaml:1: not UTF-8")


def test_feature_gates_are_those_of_the_api_servers_metrics(shown: Callable[..., Any]) -> None:
    known = installed()
    known.lists["/api/v1/namespaces/gpu-share/configmaps"][0]["data"]["team-vision.yaml"] = "allocation: dra\n"
    gates = {"DRAExtendedResource": 0, "DRAPartitionableDevices": 1}
    lines = [f'kubernetes_feature_enabled{{name="{name}",stage="BETA"}} {value}' for name, value in gates.items()]
    known.raw["/metrics"] = (200, "\n".join(("# TYPE kubernetes_feature_enabled gauge", *lines, "")).encode())
    found = {one["check"]: one for one in shown(known, "doctor")}
    assert found["feature-gates"]["found"] == ["the feature gate DRAExtendedResource is disabled"]


def test_without_the_right_to_metrics_gates_are_unknown_with_the_right_that_is_missing(
    shown: Callable[..., Any],
) -> None:
    known = installed()
    known.lists["/api/v1/namespaces/gpu-share/configmaps"][0]["data"]["team-vision.yaml"] = "allocation: dra\n"
    known.raw["/metrics"] = status_of(403, 'forbidden: User "viewer" cannot get path "/metrics"')
    found = {one["check"]: one for one in shown(known, "doctor")}
    assert (found["feature-gates"]["status"], found["feature-gates"]["right"]) == (
        "unknown",
        "get /metrics of the API server",
    )


def test_a_cluster_that_does_not_serve_dra_has_none_of_its_objects(shown: Callable[..., Any]) -> None:
    known = installed()
    for resource in ("deviceclasses", "resourceslices"):
        known.raw[f"{_DRA}/{resource}"] = status_of(404, "the server could not find the requested resource")
    assert {one["status"] for one in shown(known, "doctor")} == {"ok", "not-applicable"}


@pytest.mark.parametrize(("allowed", "code"), [(True, 0), (False, 1)])
def test_before_an_installation_only_the_cluster_and_the_rights_are_looked_at(
    asked: Asked,
    allowed: bool,  # noqa: FBT001 - of a table
    code: int,
) -> None:
    known = installed()
    known.posted[_REVIEWS] = (201, json.dumps({"status": {"allowed": allowed}}).encode())
    ran = asked(known, "doctor", "--pre")
    assert ran.exit_code == code, ran.stdout
    assert ("you may not get, create, patch daemonsets" in ran.stdout) is not allowed
    assert "Webhook" not in ran.stdout
    assert not [path for path in known.asked if "configmaps" in path or "secrets" in path]
