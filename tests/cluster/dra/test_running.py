"""Shares by DRA on a real scheduler and kubelet: nothing fails for want of room, and nothing is lost or given twice."""

import json
import shlex
from collections.abc import Iterator

import pytest

from tests.cluster.api import Answer, Object
from tests.cluster.cluster import Cluster, eventually
from tests.cluster.installation import DRA, MOVING, SIMULATED, VGPU, Installation
from tests.cluster.node import Kubelet, Node
from tests.cluster.pods import Place, container, pod
from tests.cluster.test_kinds import has_a_share

PREPARED_AGAIN_SECONDS = 150  # the kubelet tries again after 75 to 90 s
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates"
STUBBORN = container(command=["sh", "-c", "trap '' TERM; while :; do sleep 0.2; done"])


@pytest.fixture(scope="module")
def by_dra(first: Installation, cluster: Cluster) -> Iterator[Installation]:
    """Install the overlay, on clusters whose Kubernetes can."""
    version = cluster.api.get("/version")
    if (int(version["major"]), int(version["minor"].rstrip("+"))) < (1, 36):
        pytest.skip("DRA needs Kubernetes 1.36")
    first.use_dra(DRA)
    eventually(
        lambda: _resource_of("0.2", cluster) == "gpu-share.dev/share-200m", seconds=120, what="the policy is there"
    )
    yield first
    first.use(SIMULATED)
    first.leave_dra()


@pytest.fixture
def here(by_dra: Installation) -> Iterator[Place]:
    """Give a namespace for this test, on an installation as it should be."""
    by_dra.use_dra(DRA)
    made = Place.make(by_dra.cluster)
    yield made
    made.remove()
    eventually(lambda: not by_dra.cluster.api.get("/apis/resource.k8s.io/v1/resourceclaims")["items"], what="no claims")


@pytest.fixture
def kubelet() -> Iterator[Kubelet]:
    found = Kubelet.here()
    if found is None:
        pytest.skip("the kubelet of this cluster cannot be stopped from here: its processes are not this machine's")
    yield found
    found.run()


def _resource_of(share: str, cluster: Cluster) -> str:
    made = cluster.api.create(pod(share), "default", dry_run=True)
    limits = made.body["spec"]["containers"][0]["resources"].get("limits", {}) if made.ok else {}
    return next(iter(limits), "")


def running(place: Place, name: str) -> Object:
    return place.running(name, seconds=PREPARED_AGAIN_SECONDS)


def started(place: Place, share: str, name: str, *containers: Object, **spec: object) -> Object:
    made = place.create(pod(share, *containers, name=name, **spec))
    assert made.ok, made.message
    return running(place, name)


def gpu_of(place: Place, name: str) -> str:
    return place.report(name).environment["NVIDIA_VISIBLE_DEVICES"]


def is_pending(place: Place, name: str) -> bool:
    said = [one for one in place.events("FailedScheduling", "Pod") if "cannot allocate all claims" in one]
    return bool(said) and place.get(name)["status"]["phase"] == "Pending"


def test_a_share_that_fits_on_no_gpu_waits_and_no_pod_fails(here: Place) -> None:
    for share in ("0.3", "0.7", "0.9"):
        started(here, share, f"p{share[-1]}")
    assert gpu_of(here, "p3") == gpu_of(here, "p7") != gpu_of(here, "p9")
    assert here.create(pod("0.8", name="p8")).ok
    eventually(lambda: is_pending(here, "p8"), what="0.8 waits")
    assert {one["status"]["phase"] for one in here.all()} == {"Running", "Pending"}
    freed = gpu_of(here, "p9")
    here.cluster.run(f"kubectl -n {here.name} delete pod p9 --grace-period=1 --wait=false")
    running(here, "p8")
    assert gpu_of(here, "p8") == freed


def test_a_container_has_its_share_whichever_way_it_was_allocated(here: Place) -> None:
    started(here, "0.2", "model")
    report = here.report("model")
    has_a_share(report, percent=20, mib=int(report.environment["GPU_SHARE_MEMORY_MIB"]))
    assert report.environment["GPU_SHARE_FRACTION"] == "0.2"


def test_init_and_app_containers_and_sidecars_have_a_device_each(here: Place) -> None:
    shares = {"container.gpu-share.dev/init": "0.1", "container.gpu-share.dev/side": "0.3"}
    init = [container("init", args=["--once"]), container("side", restartPolicy="Always")]
    made = here.create(pod("0.2", container(), container("bare"), annotations=shares, initContainers=init))
    assert made.ok, made.message
    running(here, "model")
    found = {name: here.report("model", name).environment for name in ("init", "side", "main", "bare")}
    assert {name: one.get("GPU_SHARE_FRACTION") for name, one in found.items()} == {
        "init": "0.1",
        "side": "0.3",
        "main": "0.2",
        "bare": None,
    }
    assert found["bare"]["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_a_quota_counts_a_size(here: Place) -> None:
    hard = {"requests.gpu-share.dev/share-200m": "1"}
    here.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}})
    started(here, "0.2", "first")
    denied = eventually(lambda: _denied(here.create(pod("0.2", name="second"))), what="the quota is counted")
    assert "exceeded quota" in denied


@pytest.mark.kubelet_retry
def test_running_pods_outlive_kubelet_and_plugin_and_new_ones_start(
    by_dra: Installation, here: Place, kubelet: Kubelet, node: Node
) -> None:
    before = started(here, "0.2", "before")
    kubelet.stop()
    kubelet.run()
    started(here, "0.2", "after-kubelet")
    node.kill("gpu-share plugin")
    started(here, "0.2", "after-kill")
    by_dra.run("kubectl -n gpu-share rollout restart daemonset/gpu-share-plugin")  # as an upgrade does
    by_dra.use_dra(DRA)
    started(here, "0.2", "after-upgrade")
    assert gpu_of(here, "after-upgrade") == gpu_of(here, "before")
    after = here.get("before")["status"]["containerStatuses"]
    assert [one["containerID"] for one in after] == [
        one["containerID"] for one in before["status"]["containerStatuses"]
    ]


def test_slices_that_are_deleted_are_published_again(by_dra: Installation, here: Place) -> None:
    by_dra.run("kubectl delete resourceslices --all")
    by_dra.use_dra(DRA)
    started(here, "0.2", "model")


@pytest.mark.kubelet_retry
def test_a_container_that_starts_again_after_the_plugin_was_killed_has_its_gpu(here: Place, node: Node) -> None:
    started(here, "0.2", "model", restartPolicy="Always")
    node.run("rm -f /host/run/cdi/gpu-share-claim_*.json")
    node.kill("gpu-share plugin")
    eventually(lambda: node.run("ls /host/run/cdi").count("gpu-share-claim_"), what="the specification is back")
    here.cluster.run(f"kubectl -n {here.name} exec model -- sh -c 'kill 1'")

    def has_restarted() -> bool:
        (status,) = here.get("model")["status"]["containerStatuses"]
        return bool(status["restartCount"] == 1 and status.get("started"))

    eventually(has_restarted, what="the container runs again")
    assert here.report("model").environment["GPU_SHARE_FRACTION"] == "0.2"


@pytest.mark.kubelet_retry
def test_a_forced_delete_frees_no_gpu_whose_container_still_runs(here: Place, node: Node) -> None:
    grace = {"terminationGracePeriodSeconds": 10}
    for name in ("a", "b"):
        started(here, "0.9", name, STUBBORN, **grace)
    here.cluster.run(f"kubectl -n {here.name} delete pod a --force --grace-period=0")
    assert here.create(pod("0.9", STUBBORN, name="next", **grace)).ok
    assert _most_until_running(["next"], here, node) == 0.9


@pytest.mark.kubelet_retry
def test_forced_deletes_under_load_give_no_gpu_away_beyond_its_whole(here: Place, node: Node) -> None:
    grace = {"terminationGracePeriodSeconds": 10}
    first, second = ([f"{name}-{number}" for number in range(10)] for name in ("first", "second"))
    for name in first:
        assert here.create(pod("0.2", STUBBORN, name=name, **grace)).ok
    assert _most_until_running(first, here, node) == 1
    here.cluster.run(f"kubectl -n {here.name} delete pod --all --force --grace-period=0")
    for name in second:
        assert here.create(pod("0.2", STUBBORN, name=name, **grace)).ok
    assert _most_until_running(second, here, node) == 1


@pytest.mark.kubelet_retry
def test_a_plugin_that_is_killed_while_a_claim_waits_prepares_it_afterwards(here: Place, node: Node) -> None:
    for name in ("a", "b"):
        started(here, "0.9", name, STUBBORN, terminationGracePeriodSeconds=15)
    here.cluster.run(f"kubectl -n {here.name} delete pod a --force --grace-period=0")
    assert here.create(pod("0.9", name="next")).ok
    eventually(lambda: here.get("next")["spec"].get("nodeName"), what="the next pod is bound")
    node.kill("gpu-share plugin")
    running(here, "next")
    assert _most_of_one_gpu(node) == 0.9


@pytest.mark.kubelet_retry
def test_a_claim_that_is_deleted_while_its_pod_starts_harms_no_other_pod(here: Place) -> None:
    for number in range(3):
        assert here.create(pod("0.1", name=f"p{number}")).ok
    here.cluster.attempt(f"kubectl -n {here.name} delete resourceclaims --all --wait=false")
    here.cluster.run(f"kubectl -n {here.name} delete pod --all --grace-period=1 --wait=false")
    eventually(lambda: not here.all(), seconds=PREPARED_AGAIN_SECONDS, what="the pods are gone")
    started(here, "1", "all-of-one")
    started(here, "1", "all-of-the-other")


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


def test_policies_of_claims_are_without_a_warning(by_dra: Installation, cluster: Cluster) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    for name in ("gpu-share-claims", "gpu-share-claim-templates", "gpu-share-slices", "gpu-share"):
        status = cluster.api.get(f"{path}/{name}").get("status", {})
        assert not status.get("typeChecking", {}).get("expressionWarnings"), name
    assert by_dra.overlay


def test_the_plugin_has_no_more_memory_than_the_page_says(here: Place, node: Node) -> None:
    started(here, "0.2", "model")
    pss = node.run(
        "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q 'gpu-share plugin' "
        "&& grep ^Pss: $p/smaps_rollup; done; true"
    )
    assert max(int(line.split()[1]) for line in pss.splitlines()) < 60 * 1024


def test_a_node_that_moves_over_serves_both_ways(first: Installation, cluster: Cluster, by_dra: Installation) -> None:
    first.write_policies(**{"goes-by-dra": "allocation: dra"})
    first.use_dra(MOVING, devices=27)
    eventually(lambda: _resource_of("0.2", cluster) == VGPU, seconds=120, what="the old policy is back")
    moved, stayed = Place.make(cluster, "goes-by-dra"), Place.make(cluster, "stays")
    try:
        eventually(lambda: "share-" in _grant(moved), seconds=120, what="the namespace goes by DRA")
        for place in (moved, stayed):
            started(place, "0.6", "model")
        assert gpu_of(moved, "model") != gpu_of(stayed, "model")
        assert moved.create(pod("0.6", name="second")).ok
        eventually(lambda: is_pending(moved, "second"), what="the GPU of DRA is full")
    finally:
        moved.remove()
        stayed.remove()
        first.write_policies(**{"goes-by-dra": None})
        by_dra.use_dra(DRA)


def _grant(place: Place) -> str:
    made = place.create(pod("0.2"), dry_run=True)
    return str(made.body["metadata"]["annotations"].get("gpu-share.dev/grant", "")) if made.ok else ""


def _denied(answer: Answer) -> str:
    return "" if answer.ok else answer.message


def _most_until_running(names: list[str], place: Place, node: Node) -> float:
    """Wait until pods run, and say what was given of one GPU meanwhile, at most."""
    seen = [0.0]

    def are_running() -> bool:
        seen.append(_most_of_one_gpu(node))
        return all(place.get(name)["status"]["phase"] == "Running" for name in names)

    eventually(are_running, seconds=PREPARED_AGAIN_SECONDS, what=f"{', '.join(names)} run")
    return max(seen)


def _most_of_one_gpu(node: Node) -> float:
    """Add up the shares of the containers that have the same GPU now, on the GPU that is given most, by environment."""
    script = (
        "import pathlib, collections, json\n"
        "found = collections.defaultdict(dict)\n"
        "for path in pathlib.Path('/proc').glob('[0-9]*'):\n"
        "    try:\n"
        "        text = (path / 'environ').read_bytes().decode(errors='replace')\n"
        "        group = (path / 'cgroup').read_text()\n"
        "    except OSError:\n"
        "        continue\n"
        "    variables = dict(one.split('=', 1) for one in text.split(chr(0)) if '=' in one)\n"
        "    gpu = variables.get('NVIDIA_VISIBLE_DEVICES', '')\n"
        "    if gpu.startswith('GPU-') and 'GPU_SHARE_FRACTION' in variables:\n"
        "        found[gpu][group] = float(variables['GPU_SHARE_FRACTION'])\n"
        "print(json.dumps([round(sum(one.values()), 3) for one in found.values()]))\n"
    )
    return max(json.loads(node.run(f"python3 - <<'END'\n{script}END\n")), default=0.0)
