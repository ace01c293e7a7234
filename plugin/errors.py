"""
What can go wrong on the node, each with one sentence that names the cause and the fix.

    PluginError
    ├── AllocationError     the kubelet asks for vGPUs that cannot be held to a share
    ├── InventoryError      no GPU to offer: no NVML, no driver, none usable
    ├── SimulationError     `--simulate` names no GPUs
    ├── SocketError         no socket can be served in the kubelet's folder
    └── TenantsError        the kubelet does not say who holds which vGPUs
"""


class PluginError(Exception):
    """Never raised itself: catch it to turn a cause into one clear line."""


class AllocationError(PluginError):
    """vGPUs that cannot be held to a share; the sentence reaches the user as the pod's message."""


class InventoryError(PluginError):
    """No GPU to offer; the sentence says why and what to do."""


class SimulationError(PluginError):
    """A `--simulate` that names no GPUs."""


class SocketError(PluginError):
    """A folder in which no socket can be served."""


class TenantsError(PluginError):
    """A kubelet that does not say who holds which vGPUs."""
