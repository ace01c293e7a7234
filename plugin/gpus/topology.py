"""
How GPUs are connected with each other, read through NVML once for each pair.

Every question is optional: what a driver does not tell costs the preference for those that are near, and nothing else.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from plugin.gpus.gpu import Link
from plugin.gpus.nvml import NvmlTopology, pci_text

_MOST_LINKS = 36  # of one GPU: NVML_NVLINK_MAX_LINKS


def read_links(nvml: NvmlTopology, handles: Mapping[str, Any], *, of: str) -> tuple[Link, ...]:
    """Ask how the GPU with the UUID *of* is connected with the others of *handles*, by UUID. No error is passed on."""
    uuids = {address: uuid for uuid, handle in handles.items() if (address := _address(nvml, handle))}
    nvlinks = [uuids.get(address) for address in _nvlink_ends(nvml, handles[of])]
    made = (
        Link(
            gpu_uuid=uuid,
            nvlinks=nvlinks.count(uuid),
            common_ancestor=_common_ancestor(nvml, handles[of], handle),
        )
        for uuid, handle in handles.items()
        if uuid != of
    )
    return tuple(link for link in made if link.nvlinks or link.common_ancestor is not None)


def _nvlink_ends(nvml: NvmlTopology, handle: Any) -> Iterator[str]:
    """List where on the PCI bus each NVLink that is up ends: at a GPU, or at a switch."""
    for number in range(_MOST_LINKS):
        try:
            if nvml.nvmlDeviceGetNvLinkState(handle, number):
                yield pci_text(nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, number)) or ""
        except (nvml.NVMLError, UnicodeDecodeError):  # there is no such link, and none after it
            return


def _common_ancestor(nvml: NvmlTopology, one: Any, other: Any) -> int | None:
    try:
        return int(nvml.nvmlDeviceGetTopologyCommonAncestor(one, other))
    except nvml.NVMLError:
        return None


def _address(nvml: NvmlTopology, handle: Any) -> str | None:
    try:
        return pci_text(nvml.nvmlDeviceGetPciInfo(handle))
    except (nvml.NVMLError, UnicodeDecodeError):
        return None
