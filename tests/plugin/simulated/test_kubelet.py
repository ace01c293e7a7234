"""The simulated kubelet's PodResources, asked as the plugin asks a real one."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from plugin.device_plugin.service import Resource
from plugin.errors import TenantsError
from plugin.pod_resources.tenants import read_tenants
from plugin.simulated.device_manager import Request
from plugin.simulated.kubelet import SimulatedKubelet


@pytest.fixture
def socket(directory: Path) -> Path:
    (directory / "pod-resources").mkdir()
    return directory / "pod-resources" / "kubelet.sock"


@pytest.fixture
def kubelet(directory: Path, socket: Path) -> Iterator[SimulatedKubelet]:
    kubelet = SimulatedKubelet(directory, random=Random(1), pod_resources=socket)  # noqa: S311 - the same in every run
    yield kubelet
    kubelet.stop()


def test_it_says_who_holds_which_vgpus_until_they_are_given_back(
    registered: SimulatedKubelet, resource: Resource, socket: Path
) -> None:
    name = resource.name
    assert read_tenants(socket, {name}) == ()
    registered.allocate(Request(pod="team/a", container="prepare", resource=name, count=2, kind="init"))
    registered.allocate(Request(pod="team/a", container="proxy", resource=name, count=1, kind="sidecar"))
    main = registered.allocate(Request(pod="team/a", container="main", resource=name, count=3))
    registered.allocate(Request(pod="other/b", container="main", resource=name, count=1))
    tenants = {tenant.name: tenant for tenant in read_tenants(socket, {name})}
    assert list(tenants) == ["team/a/proxy", "team/a/main", "other/b/main"]
    assert {str(vgpu) for vgpu in tenants["team/a/main"].vgpus} == set(main.device_ids)
    assert read_tenants(socket, {"another/resource"}) == ()
    registered.free("team/a")
    assert [tenant.name for tenant in read_tenants(socket, {name})] == ["other/b/main"]


def test_it_says_so_again_after_a_restart_and_nothing_while_it_is_away(
    registered: SimulatedKubelet, resource: Resource, socket: Path
) -> None:
    registered.allocate(Request(pod="team/a", container="main", resource=resource.name, count=1))
    registered.stop()
    with pytest.raises(TenantsError):
        read_tenants(socket, {resource.name})
    registered.start()
    assert [tenant.name for tenant in read_tenants(socket, {resource.name})] == ["team/a/main"]
