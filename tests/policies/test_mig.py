"""MIG instances: their names, what a pod is given of them, and what a policy allows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.ceiling import largest_vgpus
from policies.cluster import Cluster
from policies.contract import SIZE_RESOURCE_PREFIX
from policies.device_classes import device_classes
from policies.device_names import device_in, device_name, of_profile, read_device, resource_of
from policies.mig import LONGEST_PROFILE, profile_of
from policies.reading.oversights import oversights
from policies.sizes import Size, grid, read_size
from tests.policies.pods import denied, granted, limited, pod, policies, vgpus
from tests.policies.test_nodes import problems_of

DEVICE = "gpu-share.dev/device"
MIG = "gpu-share.dev/vgpu-mig-1g.10gb"
ONE = policies("devices: [mig-1g.10gb]", "vgpusPerInstance: {1g.10gb: 6}")
EITHER = policies("devices: [gpu, mig-1g.10gb, mig-1g.10gb+me]\nshare: {whole: gpus}", "vgpusPerInstance: {1g.10gb: 6}")


@pytest.mark.parametrize(
    ("written", "profile"),
    [
        ("1g.10gb", "1g.10gb"),
        ("1g.5gb+me", "1g.5gb.me"),
        ("1g.24gb-me", "1g.24gb-me"),
        ("1g.24gb+me.all", "1g.24gb.me.all"),
        ("4g.96gb+gfx", "4g.96gb.gfx"),
        ("1c.3g.141gb", None),
        ("7g.80GB", None),
        ("g.10gb", None),
        ("0g.10gb", None),
        ("1g.10gb/x", None),
        ("1g.10gb+", None),
        ("1g.10gb\n", None),
        ("1g.10gb+abcdefgh+abcdefgh", None),
        ("", None),
    ],
)
def test_a_profile_is_read_as_nvidia_writes_it_and_named_as_a_resource_can_be(
    written: str, profile: str | None
) -> None:
    assert profile_of(written) == profile
    if profile is not None:
        assert read_device(f"mig-{written}") == of_profile(profile) == f"mig-{profile}"
        assert device_name(of_profile(profile)) == f"mig-{profile}"


@given(st.from_regex(r"[1-7]g\.[1-9][0-9]{0,2}gb([+-](me|gfx))?", fullmatch=True), st.sampled_from(["mps", "whole"]))
def test_the_profile_is_found_again_in_the_names_made_of_it(written: str, strategy: Any) -> None:
    profile = profile_of(written)
    assert profile is not None
    assert len(profile) <= LONGEST_PROFILE
    device = of_profile(profile)
    assert device_in(resource_of("example.com/gpu", device), "example.com/gpu") == device
    size = grid(4, strategy, device)[0]
    assert read_size(size.resource) == size
    assert size.resource == f"{SIZE_RESOURCE_PREFIX}{size.name}"
    assert Cluster().device_named_by(Cluster().resource(strategy, device)) == device


def test_a_share_is_of_the_instances_that_the_policy_names() -> None:
    grant = granted(pod("0.5"), ONE)
    assert (grant.strategy, grant.resource, grant.vgpus_per_gpu, vgpus(grant)) == ("mps", MIG, 6, {"main": 3})
    assert grant.attaches_in_pod


@pytest.mark.parametrize(
    ("device", "resource", "per_gpu"),
    [
        ("gpu", "gpu-share.dev/vgpu", 10),
        ("mig-1g.10gb", MIG, 6),
        ("mig-1g.10gb+me", f"{MIG}.me", 10),
        ("mig-1g.10gb.me", f"{MIG}.me", 10),
    ],
)
def test_the_annotation_chooses_among_what_the_policy_lists(device: str, resource: str, per_gpu: int) -> None:
    grant = granted(pod("0.5", annotations={DEVICE: device}), EITHER)
    assert (grant.resource, grant.vgpus_per_gpu) == (resource, per_gpu)


def test_the_first_of_the_list_holds_where_the_pod_says_nothing_and_a_limit_says_it_too() -> None:
    assert granted(pod("0.5"), EITHER).resource == "gpu-share.dev/vgpu"
    by_limit = granted(pod(None, limited(quantity=2, resource=MIG)), EITHER)
    assert (by_limit.resource, vgpus(by_limit), by_limit.containers[0].share_text) == (MIG, {"main": 2}, "0.333")


def test_a_whole_instance_is_a_resource_of_its_own() -> None:
    grant = granted(pod("1", annotations={DEVICE: "mig-1g.10gb"}), EITHER)
    assert (grant.strategy, grant.resource, vgpus(grant)) == ("whole", "gpu-share.dev/gpu-mig-1g.10gb", {"main": 1})
    assert not grant.attaches_in_pod


def test_by_dra_size_and_profile_are_in_one_name() -> None:
    by = policies("allocation: dra\ndevices: [mig-1g.10gb]", "vgpusPerInstance: {1g.10gb: 6}")
    (one,) = granted(pod("0.5"), by).containers
    assert (one.resource, one.quantity) == ("gpu-share.dev/share-500m-mig-1g.10gb", 1)
    resources = {made["spec"]["extendedResourceName"] for made in device_classes(by.cluster, by.instances)}
    assert {one.resource, "gpu-share.dev/share-200m", "gpu-share.dev/share-1000m-whole-mig-1g.10gb"} <= resources
    assert "gpu-share.dev/share-2000m-whole-mig-1g.10gb" not in resources


def test_a_size_without_its_profile_is_another_size() -> None:
    assert read_size("gpu-share.dev/share-200m-mig-1g.10gb") == Size("mps", 200, "mig-1g.10gb")
    for name in ("200m-mig-", "200m-mig-1g", "200m-mig-gpu", "200m-MIG-1g.10gb"):
        assert read_size(f"gpu-share.dev/share-{name}") is None


@pytest.mark.parametrize("strategy", ["time-slicing", "partition\npartition: h100"])
def test_instances_are_shared_by_mps_or_whole_alone(strategy: str) -> None:
    table = 'partitions: {h100: [{share: "1", resource: nvidia.com/gpu}]}'
    by = policies(f"strategy: {strategy}\ndevices: [mig-1g.10gb]", table)
    deny = denied(pod("0.5", annotations={DEVICE: "mig-1g.10gb"}), by)
    assert deny.code in ("SharingDisabled", "ConflictingRequest")


def test_a_denied_device_is_told_with_those_that_are_allowed_and_their_place() -> None:
    deny = denied(pod("0.5", annotations={DEVICE: "mig-7g.80gb"}), EITHER)
    assert deny.code == "DeviceNotAllowed"
    assert (
        '"mig-7g.80gb", and shares here are of gpu or mig-1g.10gb or mig-1g.10gb.me (_default.yaml:1)' in deny.message
    )


def test_the_ceiling_of_an_instance_is_of_the_policies_that_allow_its_profile() -> None:
    by = policies("share: {maximum: '0.5'}", team="devices: [mig-1g.10gb]\nshare: {maximum: '0.2'}")
    assert largest_vgpus(by, "mps") == 5
    assert largest_vgpus(by, "mps", "mig-1g.10gb") == 2
    assert largest_vgpus(by, "mps", "mig-2g.20gb") == 0


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("vgpusPerInstance: {1g: 6}", "vgpusPerInstance", "expected a profile of MIG instances"),
        ("vgpusPerInstance: {1g.10gb: 61}", "vgpusPerInstance.1g.10gb", "1 to 60"),
        ("vgpusPerInstance: {1g.10gb+me: 6, 1g.10gb.me: 5}", "vgpusPerInstance", "a profile twice"),
        ("resourceNames: {mps: a.b/gpu, whole: a.b/gpu-mig-x}", "resourceNames", "a name of MIG instances"),
        (f"nodes: [{{mig: shared}}]\nresourceNames: {{mps: a.b/{'v' * 39}}}", "", "at most 38 characters"),
        (
            'partitions: {a: [{share: "1", resource: gpu-share.dev/vgpu-mig-1g.10gb}]}',
            "partitions",
            "of gpu-share itself",
        ),
    ],
)
def test_a_cluster_file_says_nothing_of_instances_that_cannot_be(text: str, field: str, words: str) -> None:
    (problem,) = problems_of(text)
    assert problem.field == field
    assert words in problem.message


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        ("strategy: time-slicing\ndevices: [gpu, mig-1g.10gb]", ["a share below 1 of them is denied"]),
        ("strategy: time-slicing\ndevices: [gpu]", []),
        ("devices: [mig-1g.10gb]", []),
    ],
)
def test_instances_in_a_policy_that_cannot_share_them_are_an_oversight(rules: str, found: list[str]) -> None:
    told = [one.message for one in oversights(policies(rules), ["_default.yaml"], None) if one.field == "devices"]
    assert [words for words in found if words in "".join(told)] == found
    assert len(told) == len(found)


@pytest.mark.parametrize(
    ("cluster", "told"),
    [
        ("", ["10 vGPUs of a 1g.10gb may be more than MPS serves clients there"]),
        ("vgpusPerGpu: 6", []),
        ("vgpusPerInstance: {1g.10gb: 6}", []),
        ("vgpusPerInstance: {1g.10gb: 8}", ["8 vGPUs of a 1g.10gb may be more"]),
        ("vgpusPerGpu: 21", ["21 vGPUs of a 1g.10gb may be more", "21 vGPUs of a 3g.40gb may be more"]),
        ("vgpusPerGpu: 64", ["pods under mps are denied"]),
    ],
)
def test_policy_check_tells_of_more_vgpus_than_mps_has_clients_on_an_instance(cluster: str, told: list[str]) -> None:
    by = policies("devices: [gpu, mig-1g.10gb, mig-3g.40gb]", cluster)
    found = [one.message for one in oversights(by, ["_default.yaml"], None) if one.field.startswith("vgpusPer")]
    assert [any(one.startswith(text) for one in found) for text in told] == [True] * len(told)
    assert len(found) == len(told)
    assert all("write vgpusPerInstance: {1g.10gb: 6}" in one for one in found if "1g.10gb" in one)
