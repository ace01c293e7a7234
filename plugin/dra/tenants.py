"""
Who holds devices of DRA: whom the kubelet lists, and whose processes are left of a pod that it has forgotten.

It forgets a pod that is deleted by force at once, and takes its claims back up to a minute later.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from plugin.pod_resources.tenants import Tenant

if TYPE_CHECKING:
    from plugin.dra.driver import DraDriver

ReadTenants = Callable[[], tuple[Tenant, ...]]
_Held = tuple[str, str, str]  # namespace, pod, and device by its name


def located_with_dra(read: ReadTenants, driver: "DraDriver | None") -> ReadTenants:
    """
    Let *read*, which asks the kubelet who holds what, say too which GPUs a device of several is.

    It then names the containers too that processes are left of.
    """
    if driver is None:
        return read

    names: dict[_Held, str] = {}  # container that was listed with a device

    def located() -> tuple[Tenant, ...]:
        nonlocal names
        tenants = read()
        listed = {(one.namespace, one.pod, device): one.container for one in tenants for device in one.devices}
        left = tuple(_left(driver, listed, names))
        names = listed | {(one.namespace, one.pod, device): one.container for one in left for device in one.devices}
        return tuple(
            replace(tenant, together=frozenset(uuid for device in tenant.devices for uuid in driver.parts_of(device)))
            for tenant in (*tenants, *left)
        )

    return located


def _left(driver: "DraDriver", listed: Collection[_Held], names: Mapping[_Held, str]) -> Iterator[Tenant]:
    """List what has a device and is not *listed*; a claim has the number of a container in its pod, and no name."""
    pods = {(namespace, pod) for namespace, pod, _ in listed}
    for prepared in driver.still_used(pods):
        namespace, pod = prepared.namespace, prepared.pod
        for device in prepared.devices if pod else ():
            container = names.get((namespace, pod, device.name), device.request)
            yield Tenant(namespace=namespace, pod=pod, container=container, vgpus=(), devices=(device.name,))
