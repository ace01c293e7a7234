"""MIG instances of simulated GPUs: shared by MPS, whole, or left to others."""

from collections.abc import Iterator

import pytest

from plugin.simulated.gpus import simulated_node
from tests.cluster.cluster import eventually
from tests.cluster.devices import by_dra, need_dra, put_back, share
from tests.cluster.installation import DRA_DEVICES, MIG, MIG_DRA, MIG_GPUS, Installation
from tests.cluster.pods import Place, container, pod

PROFILE = "mig-3g.40gb"
SHARED = f"gpu-share.dev/vgpu-{PROFILE}"
WHOLE = f"gpu-share.dev/gpu-{PROFILE}"
DEVICE = {"gpu-share.dev/device": PROFILE}
POLICIES = {
    "mig": f"devices: [gpu, {PROFILE}]\nshare: {{whole: gpus}}\n",
    "mig-by-dra": f"devices: [{PROFILE}]\nallocation: dra\n",
}
PLUGIN_SECONDS = 180  # until the plugin has started anew: the kubelet waits longer before each start
STATUS = "kubectl -n gpu-share exec daemonset/gpu-share-plugin -c plugin -- gpu-share plugin status"
INSTANCES = simulated_node(MIG_GPUS).instances


def with_instances(installation: Installation, how: str, overlay: str = MIG) -> None:
    """Have the plugin share the instances, give them whole, or leave them."""
    share(installation, overlay, [{"offer": "mps", "mig": how}], POLICIES, asks=pod("0.5", annotations=DEVICE))


def has(installation: Installation, **counts: str) -> bool:
    """Whether the node has so many of the resources of instances, and of no others."""
    (node,) = installation.nodes()
    found = installation.allocatable(node)
    wanted = {"shared": SHARED, "whole": WHOLE}
    return all(found.get(wanted[name], "0") == counts.get(name, "0") for name in wanted)


@pytest.fixture(scope="module")
def instances(first: Installation) -> Iterator[Installation]:
    """Give nodes with two instances on one GPU in MIG mode, and put back what was there."""
    with put_back(first, POLICIES) as installation:
        yield installation


@pytest.fixture
def team(instances: Installation) -> Iterator[Place]:
    made = Place.make(instances.cluster, "mig")
    yield made
    made.empty()


def test_pods_share_an_instance_and_wait_where_none_has_room(instances: Installation, team: Place) -> None:
    with_instances(instances, "shared")
    eventually(lambda: has(instances, shared="16"), what="two instances of ten vGPUs each, some hidden")
    for number in range(4):
        team.started(pod("0.5", name=f"half-{number}", annotations=DEVICE))
    found = [team.report(f"half-{number}").environment for number in range(4)]
    uuids = [one["NVIDIA_VISIBLE_DEVICES"] for one in found]
    assert sorted(uuids) == sorted(instance.uuid for instance in INSTANCES for _ in range(2))
    for one in found:
        assert one["CUDA_MPS_PIPE_DIRECTORY"] == f"/tmp/nvidia-mps/{one['NVIDIA_VISIBLE_DEVICES']}"
        mib = ((INSTANCES[0].memory_bytes >> 20) - 128) // 2
        assert (one["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"], one["GPU_SHARE_MEMORY_MIB"]) == ("50", str(mib))
        assert one["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == f"0={mib}M"
    grant = team.get("half-0")
    assert grant["spec"]["containers"][0]["resources"]["limits"] == {SHARED: "5"}
    assert team.create(pod("0.1", name="late", annotations=DEVICE)).ok
    eventually(lambda: team.events("FailedScheduling", "Pod"), what="the scheduler finds no room for a fifth")
    assert any(f"Insufficient {SHARED}" in event for event in team.events("FailedScheduling", "Pod"))


def test_what_the_policy_does_not_list_is_denied(instances: Installation, team: Place) -> None:
    with_instances(instances, "shared")
    other = team.create(pod("0.5", annotations={"gpu-share.dev/device": "mig-7g.80gb"}))
    assert (other.ok, other.reason) == (False, "DeviceNotAllowed")
    elsewhere = Place.make(instances.cluster)
    for asks in (pod("0.5", annotations=DEVICE), pod(None, container(resources={"limits": {SHARED: "1"}}))):
        answer = elsewhere.create(asks)
        assert (answer.ok, answer.reason) == (False, "DeviceNotAllowed")
    never = pod(None, container(resources={"limits": {"gpu-share.dev/vgpu-timesliced-mig-x": "1"}}))
    assert not elsewhere.create(never).ok
    elsewhere.remove()


def test_whole_instances_are_one_pods_each(instances: Installation, team: Place) -> None:
    with_instances(instances, "whole")
    eventually(lambda: has(instances, whole="2"), what="two whole instances")
    team.started(pod("1", annotations=DEVICE))
    found = team.report("model").environment
    assert found["NVIDIA_VISIBLE_DEVICES"] in {one.uuid for one in INSTANCES}
    assert "CUDA_MPS_PIPE_DIRECTORY" not in found
    assert team.get("model")["spec"]["containers"][0]["resources"]["limits"] == {WHOLE: "1"}


def test_instances_that_are_left_to_others_are_not_advertised(instances: Installation) -> None:
    with_instances(instances, "none")
    eventually(lambda: has(instances), seconds=PLUGIN_SECONDS, what="no instance is allocatable")
    eventually(
        lambda: "its instances are left to NVIDIA's own plugin" in instances.cluster.attempt(STATUS).stdout,
        what="the plugin says why it shares nothing",
    )


@pytest.fixture
def team_by_dra(instances: Installation) -> Iterator[Place]:
    """Give a namespace whose shares of instances the scheduler allocates, and the classes of their profile."""
    need_dra(instances)
    with_instances(instances, "shared", MIG_DRA)
    with by_dra(instances, "mig-by-dra", devices=DRA_DEVICES) as place:
        yield place


def test_by_dra_a_share_is_a_device_of_its_profile(instances: Installation, team_by_dra: Place) -> None:
    for device in instances.devices():
        attributes = device["attributes"]
        assert attributes["profile"] == {"string": "3g.40gb"}
        assert attributes["uuid"]["string"] in {one.uuid for one in INSTANCES}
        assert attributes["size"]["string"].endswith(f"-{PROFILE}")
    for number in range(4):
        team_by_dra.started(pod("0.5", name=f"half-{number}"))
    found = [team_by_dra.report(f"half-{number}").environment for number in range(4)]
    uuids = [one["NVIDIA_VISIBLE_DEVICES"] for one in found]
    assert sorted(uuids) == sorted(instance.uuid for instance in INSTANCES for _ in range(2))
    limits = team_by_dra.get("half-0")["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {f"gpu-share.dev/share-500m-{PROFILE}": "1"}
    assert team_by_dra.create(pod("0.1", name="late")).ok
    eventually(lambda: team_by_dra.events("FailedScheduling", "Pod"), what="the scheduler finds no room for a fifth")
    assert team_by_dra.get("late")["status"]["phase"] == "Pending"
