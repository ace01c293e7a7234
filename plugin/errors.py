"""
What can go wrong on the node, each with one sentence that names the cause and the fix.

    PluginError
    ├── AlreadyRunsError    another of the same program runs on this node
    ├── AllocationError     the kubelet asks for vGPUs that cannot be held to a share
    │   └── NoRoomError     enough of them are free, but not on one healthy GPU
    ├── HandoverError       containers cannot be given their GPU in the way that was asked for
    ├── ClaimError          a claim of DRA that cannot be prepared
    ├── DraError            shares cannot be allocated by DRA on this node; in dra/: ApiError, FieldsMissingError
    ├── DiscoveryError      no GPU to share: no NVML, no driver, none usable
    ├── HoldingsError       what containers hold cannot be kept for the next plugin
    ├── MpsError            an MPS daemon cannot be run, or not as it must be
    │   └── ControlError    one does not answer; NotAskedError, AnswerError
    ├── RemovedError        a directory of the node was removed behind its mount in this container
    ├── SimulationError     `--simulate` names no GPUs
    ├── StateDirectoryError the directory of this node's state cannot be written to
    ├── SocketError         no socket can be served in the kubelet's directory
    └── TenantsError        the kubelet does not say who holds which vGPUs
"""


class PluginError(Exception):
    """Never raised itself: catch it to turn a cause into one clear line."""


class AlreadyRunsError(PluginError):
    """Another of the same program; the sentence says which."""


class AllocationError(PluginError):
    """vGPUs that cannot be held to a share; the sentence reaches the user as the pod's message."""


class NoRoomError(AllocationError):
    """vGPUs of several GPUs, since no healthy one had as many."""


class HandoverError(PluginError):
    """A way to hand GPUs over that cannot be prepared on this node."""


class HoldingsError(PluginError):
    """What containers hold, which cannot be written: a plugin that comes later would not know what it is."""


class DiscoveryError(PluginError):
    """No GPU to share; the sentence says why and what to do."""


class MpsError(PluginError):
    """An MPS daemon, or what it needs on the node, that cannot be had."""


class ControlError(MpsError):
    """An MPS daemon that does not answer, or does not do what it is told."""


class AnswerError(ControlError):
    """An MPS daemon that answers, but not as documented: a newer one may say it in other words."""


class NotAskedError(ControlError):
    """An MPS daemon that could not be asked, which says nothing about it."""


class SimulationError(PluginError):
    """A `--simulate` that names no GPUs."""


class StateDirectoryError(PluginError):
    """A directory of state that cannot be written to."""


class RemovedError(PluginError):
    """A directory of the node, removed there, of which this container has a mount that leads to nothing."""


class SocketError(PluginError):
    """A directory in which no socket can be served."""


NO_MORE_THREADS = "the node has none left, or this pod"


class ThreadsError(PluginError):
    """A thread that cannot be had and that the process cannot do without: it has to start again."""


class TenantsError(PluginError):
    """A kubelet that does not say who holds which vGPUs."""


class ClaimError(PluginError):
    """A claim that cannot be prepared; the sentence reaches the user as an event of the pod."""


class DraError(PluginError):
    """Shares that cannot be allocated by DRA on this node."""
