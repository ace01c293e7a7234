"""
Who holds devices of DRA: whom the kubelet lists, and whose processes are left of a pod that it has forgotten.

It forgets a pod that is deleted by force at once, and takes its claims back up to a minute later.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from plugin.pod_resources.tenants import Tenant

if TYPE_CHECKING:
    from plugin.dra.driver import DraDriver

ReadTenants = Callable[[], tuple[Tenant, ...]]


def located_with_dra(read: ReadTenants, driver: "DraDriver | None") -> ReadTenants:
    """
    Let *read*, which asks the kubelet who holds what, say too which GPUs a device of several is.

    It then names the containers too that processes are left of.
    """
    if driver is None:
        return read

    def located() -> tuple[Tenant, ...]:
        tenants = read()
        left = _left(driver, {(one.namespace, one.pod) for one in tenants if one.devices})
        return tuple(
            replace(tenant, together=frozenset(uuid for device in tenant.devices for uuid in driver.parts_of(device)))
            for tenant in (*tenants, *left)
        )

    return located


def _left(driver: "DraDriver", listed: Collection[tuple[str, str]]) -> Iterator[Tenant]:
    """List what has a device and is not *listed*; the claim names a container by its number in the pod alone."""
    for prepared in driver.still_used():
        if (prepared.namespace, prepared.pod) not in listed and prepared.pod:
            for device in prepared.devices:
                yield Tenant(
                    namespace=prepared.namespace,
                    pod=prepared.pod,
                    container=device.request,
                    vgpus=(),
                    devices=(device.name,),
                )
