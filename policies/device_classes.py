"""
The DeviceClasses of a cluster: one for each size of a share, out of `_cluster.yaml`.

A class has one extended resource, and that must say of which device. There are those of all devices in `nodes`, and of
the MIG instances that policies name.
"""

from collections.abc import Collection, Iterator
from typing import Any, get_args

from policies.cluster import Cluster
from policies.contract import DEVICE_PLUGIN, DRIVER, MPS, TIME_SLICING, WHOLE, SharingStrategy
from policies.device_names import GPU_DEVICE, is_instance
from policies.own_grids import own_grids
from policies.sizes import Size, grid, is_too_fine, too_fine


def device_classes(cluster: Cluster, instances: Collection[str] = ()) -> list[dict[str, Any]]:
    """
    Write the classes, for Kubernetes: of GPUs, and of these devices that are MIG *instances*.

    Raises:
        ValueError: If a grid is too fine; the sentence says which is not.
    """
    return [_device_class(size) for size in dict.fromkeys(_sizes(cluster, instances))]


def _sizes(cluster: Cluster, instances: Collection[str]) -> Iterator[Size]:
    strategies: tuple[SharingStrategy, ...] = get_args(SharingStrategy)
    models = dict.fromkeys(
        rule.of_device for rule in cluster.nodes if rule.device is not None and rule.allocation != DEVICE_PLUGIN
    )
    for device in (GPU_DEVICE, *models, *sorted(instances)):
        for strategy in (MPS, WHOLE) if is_instance(device) else strategies:
            parts = cluster.parts(strategy, device)
            if is_too_fine(parts):
                raise ValueError(too_fine(parts))
            yield from grid(parts, strategy, device)
    for _, parts, _ in own_grids(cluster):
        yield from (*grid(parts, MPS), *grid(parts, TIME_SLICING))


def _device_class(size: Size) -> dict[str, Any]:
    # The driver first: a device of another driver has no such attribute, and to ask for it would be an error.
    condition = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].size == "{size.name}"'
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": size.device_class},
        "spec": {"extendedResourceName": size.resource, "selectors": [{"cel": {"expression": condition}}]},
    }
