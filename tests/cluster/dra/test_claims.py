"""Who may make, use and change claims, templates and slices of our driver: the scheduler, and nobody else."""

import json
import shlex

import pytest

from tests.cluster.api import Object
from tests.cluster.cluster import Cluster, eventually
from tests.cluster.dra.shares import started
from tests.cluster.installation import Installation
from tests.cluster.pods import Place, container, pod

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates"


def test_a_kubelet_may_read_a_claim_that_the_node_authorizer_has_not_heard_of(here: Place) -> None:
    kubelet = "--as=system:node:of-no-pod --as-group=system:nodes --as-group=system:authenticated"
    asked = f"kubectl auth can-i get resourceclaims.resource.k8s.io/of-no-pod -n {here.name} {kubelet}"
    assert here.cluster.attempt(asked).stdout.strip() == "yes"
    assert here.cluster.attempt(asked.replace("can-i get", "can-i delete")).stdout.startswith("no")


def _claim(class_name: str) -> Object:
    requests = [{"name": "r", "exactly": {"deviceClassName": class_name}}]
    return {"metadata": {"name": "own"}, "spec": {"devices": {"requests": requests}}}


@pytest.mark.parametrize("class_name", ["share-1000m.gpu-share.dev", "share-200m-timesliced.gpu-share.dev"])
def test_nobody_makes_a_claim_or_a_template_of_our_classes(here: Place, class_name: str) -> None:
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"} | _claim(class_name)
    made = here.cluster.api.ask("POST", CLAIMS.format(here.name), body)
    assert "are made by the scheduler alone" in made.message
    template = {"metadata": {"name": "own"}, "spec": {"spec": _claim(class_name)["spec"]}}
    made = here.cluster.api.ask(
        "POST",
        TEMPLATES.format(here.name),
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", **template},
    )
    assert "cannot name a device class of gpu-share" in made.message


def test_a_claim_of_anothers_class_is_nobodys_business(here: Place) -> None:
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"} | _claim("gpu.example.com")
    assert here.cluster.api.ask("POST", CLAIMS.format(here.name), body).ok


def test_no_pod_uses_the_claim_of_another_one(here: Place) -> None:
    started(here, "0.2", "owner")
    (claim,) = here.cluster.api.get(CLAIMS.format(here.name))["items"]
    thief = container(resources={"claims": [{"name": "stolen"}]})
    claims = [{"name": "stolen", "resourceClaimName": claim["metadata"]["name"]}]
    made = here.create(pod(None, thief, name="thief", resourceClaims=claims))
    if made.ok:  # the scheduler may bind it only together with the claim's reservation
        eventually(lambda: here.events("FailedScheduling", "Pod"), what="the scheduler has tried")
        (after,) = here.cluster.api.get(CLAIMS.format(here.name))["items"]
        assert [one["name"] for one in after["status"]["reservedFor"]] == ["owner"]
        assert here.get("thief")["status"]["phase"] == "Pending"


def test_a_claim_of_a_class_that_leaves_the_driver_open_gets_no_share(here: Place) -> None:
    classes, name = "/apis/resource.k8s.io/v1/deviceclasses", "any.example.com"
    open_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": {}}
    assert here.cluster.api.ask("POST", classes, open_class).ok
    try:
        body: Object = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"} | _claim(name)
        ours = "device.driver == 'gpu-share.dev' && device.attributes['gpu-share.dev'].size == '1000m'"
        body["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": ours}}]
        assert here.cluster.api.ask("POST", CLAIMS.format(here.name), body).ok
        thief = container(resources={"claims": [{"name": "open"}]})
        claims = [{"name": "open", "resourceClaimName": "own"}]
        assert here.create(pod(None, thief, name="thief", resourceClaims=claims)).ok

        def is_told() -> bool:
            events = here.cluster.api.get(f"/api/v1/namespaces/{here.name}/events")["items"]
            return any("to a claim of a device class of gpu-share alone" in one.get("message", "") for one in events)

        eventually(is_told, what="the scheduler was denied to allocate it")
        claim = here.cluster.api.get(f"{CLAIMS.format(here.name)}/own")
        assert "allocation" not in claim.get("status", {})
        assert here.get("thief")["status"]["phase"] == "Pending"
        started(here, "1", "first")
        started(here, "1", "second")  # of two GPUs
    finally:
        here.cluster.api.ask("DELETE", f"{classes}/{name}")


@pytest.mark.parametrize("share", ["0.2", "1"])
def test_no_pod_comes_to_a_node_without_the_scheduler_that_makes_its_claim(here: Place, share: str) -> None:
    (node,) = [one["metadata"]["name"] for one in here.cluster.api.get("/api/v1/nodes")["items"]]
    made = here.create(pod(share, nodeName=node))
    assert "names its node" in made.message
    granted = here.create(pod(share), dry_run=True).body
    forged = pod(None, name="forged", nodeName=node)
    forged["metadata"]["annotations"] = granted["metadata"]["annotations"] | {"gpu-share": None}
    forged["spec"]["containers"] = granted["spec"]["containers"]
    assert not here.create(forged, dry_run=True).ok


def test_users_change_nothing_of_a_claim_that_is_held(here: Place) -> None:
    started(here, "0.2", "owner")
    (claim,) = here.cluster.api.get(CLAIMS.format(here.name))["items"]
    path = f"{CLAIMS.format(here.name)}/{claim['metadata']['name']}"
    removed = here.cluster.api.ask("PATCH", path, {"metadata": {"finalizers": None}})
    assert "is changed by the scheduler and the controllers" in removed.message


def test_a_plugin_writes_no_slice_of_another_node(by_dra: Installation, here: Place) -> None:
    (name,) = [one["metadata"]["name"] for one in by_dra.pods("plugin")]
    script = (
        "from plugin.dra.api_server import ApiServer, SLICES; import os, pathlib; "
        "api = ApiServer.from_environment(os.environ, "
        "credentials=pathlib.Path('/var/run/secrets/kubernetes.io/serviceaccount')); "
        "api.create(SLICES, {'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceSlice', 'metadata': {'name': 'x'}, "
        "'spec': {'driver': 'gpu-share.dev', 'nodeName': 'other', 'pool': {'name': 'other', 'generation': 1, "
        "'resourceSliceCount': 1}, 'devices': []}})"
    )
    ran = here.cluster.attempt(f"kubectl -n gpu-share exec {name} -- python3 -c {shlex.quote(script)}")
    assert "on its own node only" in ran.stderr


@pytest.mark.parametrize("pool", ["other", ""])
def test_a_kubelet_writes_no_slice_of_ours_into_the_pool_of_another_node(here: Place, pool: str) -> None:
    (node,) = [one["metadata"]["name"] for one in here.cluster.api.get("/api/v1/nodes")["items"]]
    spec = {
        "driver": "gpu-share.dev",
        "nodeName": node,
        "pool": {"name": pool or node, "generation": 1, "resourceSliceCount": 1},
    }
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "x"}, "spec": spec}
    create = f"kubectl --as=system:node:{node} --as-group=system:nodes create --dry-run=server -f -"
    ran = here.cluster.attempt(create, stdin=json.dumps(body))
    assert ("spec.pool.name must be spec.nodeName" in ran.stderr) is bool(pool), ran.stderr


def test_policies_of_claims_are_without_a_warning(by_dra: Installation, cluster: Cluster) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    for name in ("-claims", "-claim-templates", "-allocations", "-slices", ""):
        status = cluster.api.get(f"{path}/gpu-share{name}").get("status", {})
        assert not status.get("typeChecking", {}).get("expressionWarnings"), name
    assert by_dra.overlay
