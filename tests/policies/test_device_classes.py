"""The DeviceClasses: one for each size, and the shipped ones are those of the shipped grid."""

from pathlib import Path

import pytest
import yaml

from policies.cluster import Cluster
from policies.device_classes import device_classes
from policies.reading.oversights import oversights
from policies.sizes import read_size
from tests.manifests import device_classes as shipped
from tests.policies.pods import granted, pod, policies
from tests.webhook.commands import run


def test_each_class_selects_the_devices_of_one_size_by_the_driver_and_its_name() -> None:
    for one in device_classes(Cluster()):
        size = read_size(one["spec"]["extendedResourceName"])
        assert size is not None
        assert one["metadata"]["name"] == size.device_class
        (selector,) = one["spec"]["selectors"]
        assert selector["cel"]["expression"].endswith(f'.size == "{size.name}"')


@pytest.mark.parametrize("share", ["0.1", "0.35", "1"])
def test_a_pod_asks_for_a_resource_that_a_class_has(share: str) -> None:
    resources = {one["spec"]["extendedResourceName"] for one in device_classes(Cluster())}
    assert {one.resource for one in granted(pod(share), policies("allocation: dra")).containers} <= resources


def test_the_command_prints_what_the_overlay_has() -> None:
    ran = run("policy", "classes")
    assert list(yaml.safe_load_all(ran.stdout)) == list(yaml.safe_load_all(shipped.text()))


def test_a_grid_that_is_too_fine_has_no_classes() -> None:
    with pytest.raises(ValueError, match="at most 34 fits"):
        device_classes(Cluster(vgpus_per_gpu=100))


def test_a_policy_that_goes_by_dra_with_such_a_grid_is_an_oversight() -> None:
    found = list(oversights(policies("allocation: dra", "vgpusPerGpu: 50"), ["_default.yaml"], None))
    assert any("every share is denied" in one.message and one.field == "allocation" for one in found)


def test_a_broken_policy_is_told_since_its_devices_have_no_classes(tmp_path: Path) -> None:
    (tmp_path / "_cluster.yaml").write_text("nodes: [{mig: shared, allocation: dra}]\n")
    (tmp_path / "team.yaml").write_text("devices: [mig-1g.10gb]\nmode: no\n")
    ran = run("policy", "classes", "--policies", tmp_path)
    assert "mig-1g" not in ran.stdout
    assert f"gpu-share: warning: {tmp_path}/team.yaml:2: mode: " in ran.stderr
