"""The DeviceClasses of a cluster: one for each size of a share, out of `_cluster.yaml`."""

from typing import Any, get_args

from policies.cluster import Cluster
from policies.contract import DRIVER, SharingStrategy
from policies.sizes import Size, grid, is_too_fine, too_fine


def device_classes(cluster: Cluster) -> list[dict[str, Any]]:
    """
    Write the classes, for Kubernetes.

    Raises:
        ValueError: If the grid is too fine; the sentence says which is not.
    """
    if is_too_fine(cluster.vgpus_per_gpu):
        raise ValueError(too_fine(cluster.vgpus_per_gpu))
    strategies: tuple[SharingStrategy, ...] = get_args(SharingStrategy)
    return [_device_class(size) for strategy in strategies for size in grid(cluster.vgpus_per_gpu, strategy)]


def _device_class(size: Size) -> dict[str, Any]:
    # The driver first: a device of another driver has no such attribute, and to ask for it would be an error.
    condition = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].size == "{size.name}"'
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": size.device_class},
        "spec": {"extendedResourceName": size.resource, "selectors": [{"cel": {"expression": condition}}]},
    }
