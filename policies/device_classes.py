"""
The DeviceClasses of a cluster: one for each size of a share, out of `_cluster.yaml`.

Of MIG instances there are those of the profiles that policies name: a class has one extended resource, and that must
say which profile.
"""

from collections.abc import Collection, Iterator
from typing import Any, get_args

from policies.cluster import Cluster
from policies.contract import DRIVER, MPS, WHOLE, SharingStrategy
from policies.mig import NO_PROFILE
from policies.sizes import Size, grid, is_too_fine, too_fine


def device_classes(cluster: Cluster, profiles: Collection[str] = ()) -> list[dict[str, Any]]:
    """
    Write the classes, for Kubernetes: of GPUs, and of MIG instances with these *profiles*.

    Raises:
        ValueError: If a grid is too fine; the sentence says which is not.
    """
    return [_device_class(size) for size in _sizes(cluster, profiles)]


def _sizes(cluster: Cluster, profiles: Collection[str]) -> Iterator[Size]:
    strategies: tuple[SharingStrategy, ...] = get_args(SharingStrategy)
    for profile in (NO_PROFILE, *sorted(profiles)):
        for strategy in (MPS, WHOLE) if profile else strategies:
            parts = cluster.parts(strategy, profile)
            if is_too_fine(parts):
                raise ValueError(too_fine(parts))
            yield from grid(parts, strategy, profile)


def _device_class(size: Size) -> dict[str, Any]:
    # The driver first: a device of another driver has no such attribute, and to ask for it would be an error.
    condition = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].size == "{size.name}"'
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": size.device_class},
        "spec": {"extendedResourceName": size.resource, "selectors": [{"cel": {"expression": condition}}]},
    }
