"""GPUs of a model with a name, a resource and a number of vGPUs of their own."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.ceiling import largest_vgpus
from policies.cluster import Cluster
from policies.contract import SharingStrategy
from policies.device_classes import device_classes
from policies.device_names import device_in, device_name, of_model, read_device, resource_of
from policies.nodes import NodeRule
from policies.reading.oversights import oversights
from policies.sizes import Size, grid, read_size
from tests.policies.pods import denied, granted, limited, only, pod, policies, vgpus
from tests.policies.test_nodes import problems_of

DEVICE = "gpu-share.dev/device"
T4 = "gpu-share.dev/vgpu-model-t4"
NODES = 'nodes: [{model: "*T4*", device: t4, vgpusPerGpu: 4}]'
EITHER = policies("devices: [gpu, t4]\nshare: {whole: gpus}", NODES)
NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?", fullmatch=True).filter(
    lambda name: name != "gpu" and not name.startswith("mig-")
)
STRATEGIES = st.sampled_from(get_args(SharingStrategy))


@given(NAMES, STRATEGIES)
def test_the_device_is_found_again_in_the_names_made_of_it(name: str, strategy: Any) -> None:
    device = read_device(name)
    assert device == of_model(name)
    assert device_name(device) == name
    by = Cluster(nodes=(NodeRule(device=name, vgpus_per_gpu=7),))
    assert by.device_named_by(by.resource(strategy, device)) == device
    assert by.parts_named_by(by.resource(strategy, device)) == (None if strategy == "whole" else 7)
    assert device_in(resource_of("example.com/vgpu", device), "example.com/vgpu") == device
    for size in grid(4, strategy, device):
        assert read_size(size.resource) == size
        assert len(size.resource.partition("/")[2]) <= 63


@given(NAMES, NAMES, STRATEGIES)
def test_no_two_devices_or_strategies_have_a_name_in_common(one: str, other: str, strategy: Any) -> None:
    by = Cluster()
    names = [by.resource(kind, of_model(name)) for kind in get_args(SharingStrategy) for name in {one, other}]
    assert len(set(names)) == len(names)
    assert not {by.resource(strategy), by.resource(strategy, "mig-1g.10gb")} & set(names)


@given(st.integers(1, 34), st.integers(1, 34), st.integers(1, 1000), st.booleans())
def test_a_share_is_rounded_up_on_the_grid_of_its_device(cluster: int, own: int, milli: int, by_dra: bool) -> None:  # noqa: FBT001
    rules = "devices: [gpu, t4]\nallocation: dra" if by_dra else "devices: [gpu, t4]"
    by = policies(rules, f"vgpusPerGpu: {cluster}\nnodes: [{{device: t4, vgpusPerGpu: {own}}}]")
    share = f"0.{milli:03}" if milli < 1000 else "1"
    for annotations, number, device in (({DEVICE: "t4"}, own, "model-t4"), ({}, cluster, "")):
        grant = granted(pod(share, annotations=annotations), by)
        units = only(grant).vgpus
        assert (units - 1) * 1000 < milli * number <= units * 1000
        assert grant.vgpus_per_gpu == number
        wanted = Size("mps", 1000 * units // number, device).resource if by_dra else by.cluster.resource("mps", device)
        assert (only(grant).resource, only(grant).quantity) == (wanted, 1 if by_dra else units)


def test_a_share_of_0_2_is_a_quarter_of_a_gpu_with_four() -> None:
    grant = granted(pod("0.2", annotations={DEVICE: "t4"}), EITHER)
    assert (grant.resource, grant.vgpus_per_gpu, vgpus(grant)) == (T4, 4, {"main": 1})
    assert '"main": 0.2 of a GPU is 0.8 of 4 vGPUs, rounded up to 1' in grant.warnings
    assert granted(pod("0.2"), EITHER).resource == "gpu-share.dev/vgpu"


def test_a_limit_of_its_resource_says_the_device_too() -> None:
    grant = granted(pod(None, limited(quantity=3, resource=T4)), EITHER)
    assert (grant.resource, vgpus(grant), only(grant).share_text) == (T4, {"main": 3}, "0.75")
    by_dra = policies("devices: [gpu, t4]\nallocation: dra", NODES)
    assert (
        only(granted(pod(None, limited(quantity=1, resource="gpu-share.dev/share-250m-model-t4")), by_dra)).vgpus == 1
    )


def test_whole_gpus_of_the_device_are_a_resource_of_their_own_and_may_be_several() -> None:
    by = policies("devices: [t4]\nshare: {whole: gpus, maximum: '2'}", NODES)
    grant = granted(pod("2"), by)
    assert (grant.resource, vgpus(grant)) == ("gpu-share.dev/gpu-model-t4", {"main": 2})


def test_bounds_and_ceilings_are_in_the_number_of_the_device() -> None:
    by = policies("devices: [t4]\nshare: {maximum: '0.5', podMaximum: '0.75'}", NODES)
    assert denied(pod("0.51"), by).code == "ShareAboveMaximum"
    above = denied(pod("0.5", limited("a", 2, T4), limited("b", 2, T4)), by)
    assert (above.code, "Bring the sum to 3 vGPUs or less" in above.message) == ("PodShareAboveMaximum", True)
    assert (largest_vgpus(by, "mps", "model-t4"), largest_vgpus(by, "mps")) == (2, 0)


@pytest.mark.parametrize(
    ("on", "code"),
    [
        (pod("0.2", annotations={DEVICE: "l4"}), "DeviceNotAllowed"),
        (pod("0.2", annotations={DEVICE: "model-t4"}), "DeviceNotAllowed"),
        (pod(None, limited(resource="gpu-share.dev/vgpu-model-l4")), "DeviceNotAllowed"),
        (pod("0.2", limited(quantity=1), annotations={DEVICE: "t4"}), "ConflictingRequest"),
    ],
)
def test_what_the_policy_does_not_list_or_the_pod_contradicts_is_denied(on: dict[str, Any], code: str) -> None:
    assert denied(on, EITHER).code == code


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ('nodes:\n- {model: "*T4*", vgpusPerGpu: 4}', "nodes[0].vgpusPerGpu", "counted before they have a node: add"),
        (
            "nodes: [{offer: mps, vgpusPerGpu: 4}]",
            "nodes[0].vgpusPerGpu",
            "the scheduler counts the vGPUs of all nodes",
        ),
        ("nodes: [{offer: whole, device: t4, vgpusPerGpu: 4}]", "nodes[0].vgpusPerGpu", "offer says whole"),
        ("nodes: [{offer: none, device: t4}]", "nodes[0].device", "offer says none"),
        ("nodes: [{device: t4, vgpusPerGpu: 0}]", "nodes[0].vgpusPerGpu", "from 1 to 100"),
        ("nodes: [{device: gpu}]", "nodes[0].device", "not gpu and not mig-"),
        ("nodes: [{device: mig-1g.10gb}]", "nodes[0].device", "not gpu and not mig-"),
        ("nodes: [{device: T4}]", "nodes[0].device", "lower-case letters"),
        ("nodes: [{device: abcdefghijklmnopqrstu}]", "nodes[0].device", "at most 20"),
        ("nodes: [{device: t4, offer: mps, vgpusPerGpu: 61}]", "nodes[0].vgpusPerGpu", "60 clients"),
        ("nodes: [{device: t4, allocation: dra, vgpusPerGpu: 50}]", "nodes[0].vgpusPerGpu", "128 are possible"),
        (
            "nodes: [{device: t4, node: a, vgpusPerGpu: 4}, {device: t4, vgpusPerGpu: 8}]",
            "nodes",
            "gives the device t4 two numbers of vGPUs, 4 and 8, and the scheduler counts one unit of its resource",
        ),
        ("nodes: [{device: t4, node: a, vgpusPerGpu: 4}, {device: t4}]", "nodes", "4 and that of the cluster"),
        (
            "resourceNames: {time-slicing: gpu-share.dev/vgpu-model-t4}\nnodes: [{device: t4}]",
            "resourceNames",
            "a name of a device of nodes beside gpu-share.dev/vgpu",
        ),
        (f"nodes: [{{device: t4}}]\nresourceNames: {{mps: a.b/{'v' * 55}}}", "", "at most 54 characters"),
        ('partitions: {a: [{share: "1", resource: gpu-share.dev/vgpu-model-t4}]}', "partitions", "of gpu-share itself"),
    ],
)
def test_what_cannot_be_true_is_an_error_that_says_why(text: str, field: str, words: str) -> None:
    (problem,) = problems_of(text)
    assert problem.field == field
    assert words in problem.message


def test_one_device_may_be_of_several_models_and_on_several_nodes() -> None:
    text = "nodes: [{model: '*T4*', device: small, vgpusPerGpu: 4}, {model: '*P4*', device: small, vgpusPerGpu: 4}]"
    assert policies(cluster=text).cluster.models == ("model-small",)
    shared_and_whole = "nodes: [{node: a, device: t4, vgpusPerGpu: 4}, {device: t4, offer: whole}]"
    assert policies(cluster=shared_and_whole).cluster.parts("mps", "model-t4") == 4


def test_a_device_that_nodes_do_not_name_is_a_problem_of_the_policy() -> None:
    with pytest.raises(Exception, match=r"_default.yaml:1: devices: .*have no device t5, known are t4"):
        policies("devices: [t5]", NODES)


def test_a_policy_whose_device_is_lost_grants_nothing() -> None:
    lost = policies("devices: [t4]", NODES)
    deny = denied(pod("0.2"), type(lost)(Cluster(), lost.catalogue, lost.default, lost.namespaces))
    assert (deny.code, "names the device t4, and nodes have none" in deny.message) == ("SharingDisabled", True)


def classes(by: Any) -> set[str]:
    return {made["spec"]["extendedResourceName"].removeprefix("gpu-share.dev/share-") for made in device_classes(by)}


def test_the_classes_are_those_of_all_grids() -> None:
    by = policies(cluster="nodes: [{device: t4, vgpusPerGpu: 4}, {model: l4, allocation: dra, vgpusPerGpu: 3}]").cluster
    found = classes(by)
    assert {"250m-model-t4", "750m-timesliced-model-t4", "2000m-whole-model-t4", "100m", "333m", "666m"} <= found
    assert "250m" not in found
    assert not any("model" in one for one in classes(policies(cluster=NODES.replace("]", "")[:-1] + DP).cluster))


DP = ", allocation: device-plugin}]"


def test_gpus_by_dra_without_a_device_take_sizes_of_the_cluster_and_are_named_where_they_do_not() -> None:
    by = policies("allocation: dra", 'nodes: [{model: "*T4*", allocation: dra, vgpusPerGpu: 4}]')
    grant = granted(pod("0.25"), by)
    assert only(grant).resource == "gpu-share.dev/share-300m"
    assert grant.not_taken_by == ("nodes[0] (4 vGPUs)",)
    assert granted(pod("0.5"), by).not_taken_by == ()
    (told,) = (one for one in oversights(by, ["_default.yaml"], None) if one.field == "nodes")
    assert "nobody gets 0.25, 0.75 of these GPUs: add a device" in told.message
    fits = policies("allocation: dra", "vgpusPerGpu: 20\nnodes: [{allocation: dra, vgpusPerGpu: 4}]")
    assert [one for one in oversights(fits, ["_default.yaml"], None) if one.field == "nodes"] == []


def test_a_bound_between_the_vgpus_of_a_device_is_an_oversight() -> None:
    by = policies("devices: [gpu, t4]\nshare: {maximum: '0.3'}", NODES)
    (told,) = (one.message for one in oversights(by, ["_default.yaml"], None) if one.field == "share.maximum")
    assert told.startswith("0.3 of the device t4 is 1.2 of 4 vGPUs: at most 1 can be granted")
