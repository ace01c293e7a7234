"""In a cluster that is locked down, no pod gets to a GPU but by a share."""

from copy import deepcopy
from typing import Any

import pytest
import yaml

from tests.bypass.corpus_devices import ANNOTATIONS
from tests.bypass.corpus_lockdown import CLAIMS_TO_GPUS, OTHER_CLAIMS, in_version, template, to_a_gpu, without_a_gpu
from tests.manifests.admission import BASE, NODE, policy, policy_spec, selects, stored
from tests.manifests.granted_pods import GRANTED, one
from tests.manifests.json_patch import patched
from tests.manifests.render import MANIFESTS, ROOT, Object, render
from tests.policies.pods import container, mutated, pod, policies

DIRECTORY = MANIFESTS / "components" / "lockdown"
OBJECTS = render(DIRECTORY)
PODS, CLAIMS = policy(OBJECTS, "gpu-share-lockdown"), policy(OBJECTS, "gpu-share-lockdown-claims")
NVIDIA = policies("placement: {runtimeClassName: nvidia}")
PLAIN = stored(pod(None))
ATTEMPTS = list(to_a_gpu())


@pytest.mark.parametrize(("says", "on"), [made[1:] for made in ATTEMPTS], ids=[made[0] for made in ATTEMPTS])
def test_a_pod_without_a_share_that_names_gpus_is_denied(says: str, on: Object) -> None:
    (said,) = PODS.denials(stored(on))
    assert says in said


@pytest.mark.parametrize(("says", "on"), [made[1:] for made in ATTEMPTS if "grant" not in made[0]])
def test_a_forged_grant_explains_nothing_without_a_share(says: str, on: Object) -> None:
    claimed = deepcopy(on)
    claimed["metadata"]["annotations"]["gpu-share.dev/grant"] = '{"strategy":"mps","attach":"pod","resource":"x"}'
    (said,) = PODS.denials(stored(claimed))
    assert says in said


@pytest.mark.parametrize(("name", "on"), list(without_a_gpu()))
def test_every_other_pod_is_admitted(name: str, on: Object) -> None:
    assert PODS.denials(stored(on)) == [], name


@pytest.mark.parametrize("name", GRANTED)
def test_a_pod_with_a_share_is_admitted(name: str) -> None:
    assert PODS.denials(one(name)) == []


TRIAL: Object = {"metadata": {"name": "team", "labels": {"gpu-share.dev/mode": "warn"}}}


def test_a_grant_explains_nothing_in_a_namespace_where_it_may_be_forged() -> None:
    placed = stored(mutated(pod("0.2"), NVIDIA))
    for on, said in (
        (one("a MIG instance"), "of another device plugin"),
        (placed, "a RuntimeClass of NVIDIA's runtime"),
    ):
        for labels in ({}, {"gpu-share.dev/mode": "enforce"}):
            assert PODS.denials(on, namespace={"metadata": {"name": "team", "labels": labels}}) == []
        message = next(one for one in PODS.denials(on, namespace=TRIAL) if said in one)
        assert "namespace without the label gpu-share.dev/mode=warn" in message


def test_a_share_attached_by_the_node_needs_no_grant_to_be_believed() -> None:
    assert PODS.denials(one("one, attached by the node"), namespace=TRIAL) == []


def test_the_namespaces_where_no_grant_is_believed_are_those_that_are_only_warned() -> None:
    (binding,) = (one["spec"] for one in BASE if one["metadata"]["name"] == "gpu-share-warn")
    assert selects(binding["matchResources"]["namespaceSelector"], TRIAL["metadata"]["labels"])


def test_a_grant_of_partitions_explains_its_own_resources_alone() -> None:
    on = one("a MIG instance")
    (name,) = on["spec"]["containers"][0]["resources"]["limits"]
    for change in ("nvidia.com/gpu", "nvidia.com/mig-7g.80gb"):
        other = deepcopy(on)
        for amounts in other["spec"]["containers"][0]["resources"].values():
            amounts[change] = amounts.pop(name)
        assert PODS.denials(other) != []
    without = deepcopy(on)
    del without["metadata"]["annotations"]["gpu-share"]
    assert PODS.denials(without) != []


def test_a_pod_with_a_share_has_the_runtime_of_nvidia_where_its_policy_says_so() -> None:
    for on in (pod("0.2"), pod("1")):
        placed = stored(mutated(on, NVIDIA))
        assert placed["spec"]["runtimeClassName"] == "nvidia"
        assert PODS.denials(placed) == []


@pytest.mark.parametrize(
    "change",
    [
        {"volumes": [{"name": "dev", "hostPath": {"path": "/dev"}}]},
        {"containers": [container("b", env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}])]},
        {"containers": [container("b", securityContext={"privileged": True})]},
    ],
)
def test_a_share_explains_nothing_else(change: dict[str, list[Any]]) -> None:
    on = one("one")
    for field, added in change.items():
        on["spec"][field] = [*on["spec"].get(field, []), *added]
    assert len(PODS.denials(stored(on))) == 1


def test_pods_from_before_can_still_be_updated() -> None:
    for name, _, on in ATTEMPTS:
        old = stored(on)
        assert PODS.denials(old | {"metadata": old["metadata"] | {"finalizers": []}}, old) == [], name


@pytest.mark.parametrize("key", [*ANNOTATIONS[:4], "gpu-fraction"])
def test_no_update_adds_an_annotation_that_leads_to_a_gpu(key: str) -> None:
    new = deepcopy(PLAIN)
    new["metadata"]["annotations"] = {key: "nvidia.com/gpu=all"}
    (said,) = PODS.denials(new, PLAIN)
    assert "has an annotation by which" in said


@pytest.mark.parametrize(
    ("fields", "admitted"),
    [
        ({}, True),
        ({"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]}, True),
        ({"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}, False),
        ({"securityContext": {"privileged": True}}, False),
    ],
)
def test_an_ephemeral_container_is_held_to_the_same(fields: Object, *, admitted: bool) -> None:
    new = deepcopy(PLAIN)
    new["spec"]["ephemeralContainers"] = [container("debugger", **fields)]
    assert (PODS.denials(new, PLAIN) == []) is admitted
    assert PODS.denials(new, new) == []  # it was there before


def test_the_mirror_pods_of_kubelets_are_left_alone_and_no_others() -> None:
    on = stored(ATTEMPTS[0][2])
    on["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "0"
    assert not PODS.matches(on, groups=NODE)
    assert PODS.denials(on) != []


VERSIONS = ("v1", "v1beta2", "v1beta1")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", CLAIMS_TO_GPUS)
def test_a_claim_of_a_gpu_is_denied(name: str, version: str) -> None:
    claim = in_version(version, CLAIMS_TO_GPUS[name])
    for on in (claim, template(claim)):
        (said,) = CLAIMS.denials(on)
        assert "nobody claims one" in said
        assert CLAIMS.denials(on | {"metadata": {"finalizers": ["a"]}}, on) == []  # it is there already


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", OTHER_CLAIMS)
def test_other_claims_are_admitted(name: str, version: str) -> None:
    claim = in_version(version, OTHER_CLAIMS[name])
    for on in (claim, template(claim)):
        assert CLAIMS.denials(on) == []
    assert CLAIMS.denials({"kind": "ResourceClaim", "metadata": {}, "spec": {}}) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_claim_without_requests_which_has_null_for_them_is_admitted(version: str) -> None:
    claim: Object = {"apiVersion": f"resource.k8s.io/{version}", "kind": "ResourceClaim", "metadata": {"name": "c"}}
    claim["spec"] = {"devices": {"requests": None}}
    for on in (claim, template(claim)):
        assert CLAIMS.denials(on) == []


def test_claims_are_held_to_it_by_clusters_that_serve_no_v1_yet() -> None:
    (rule,) = policy_spec(OBJECTS, "gpu-share-lockdown-claims")["matchConstraints"]["resourceRules"]
    assert set(rule["apiVersions"]) == set(VERSIONS)


def test_exempt_namespaces_are_the_same_for_pods_and_claims() -> None:
    selectors = [policy_spec(OBJECTS, name)["matchConstraints"]["namespaceSelector"] for name in PODS_AND_CLAIMS]
    assert selectors[0] == selectors[1]
    for name in ("gpu-share", "kube-system", "gpu-operator", "team"):
        assert selects(selectors[0], {"kubernetes.io/metadata.name": name}) is (name == "team")


def test_the_documents_say_where_an_exempt_namespace_stands_that_is_to_be_taken_out() -> None:
    page = (ROOT / "docs" / "security.md").read_text()
    operations = [yaml.safe_load(line)[0] for line in page.splitlines() if "/values/3" in line]
    assert [one["op"] for one in operations] == ["test", "remove"]
    for name in PODS_AND_CLAIMS:
        left = patched({"spec": policy_spec(OBJECTS, name)}, operations)
        (expression,) = left["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
        assert expression["values"] == ["gpu-operator", "gpu-share", "kube-system"]


PODS_AND_CLAIMS = ("gpu-share-lockdown", "gpu-share-lockdown-claims")


def test_the_component_repeats_what_the_policy_of_shares_says() -> None:
    ours = {one["name"]: one["expression"] for one in policy_spec(BASE)["variables"]}
    theirs = {one["name"]: one["expression"] for one in policy_spec(OBJECTS, "gpu-share-lockdown")["variables"]}
    for name in ("resources", "pipes", "deviceAnnotations", "otherGpus"):
        assert theirs[name] == ours[name]
