"""
What a node publishes of itself, and what others read: `GET /state` of its parts, in one schema.

Reader and node may be of different versions. What a newer node adds is ignored, and what an older one lacks has a
default. Words that may grow, such as strategies, are texts. `version` rises where an older reader would misunderstand.

Nothing that is read is trusted: all is bounded, and no text has a character that moves a terminal's cursor. A figure
that is not known is None, never 0.
"""

from collections.abc import Iterable
from typing import Annotated, Final

import msgspec

from policies.contract import MILLI_PER_GPU
from policies.errors import GpuShareError
from policies.mig import names_instance
from policies.node_values import Count, Moment, Name, Part, Ratio, Resource, Seconds, Text, Word
from policies.outsiders import MOST_OUTSIDERS, OfNode, Outsider

VERSION: Final = 1
LARGEST_BYTES: Final = 8 * 1024 * 1024  # 64 GPUs with 100 tenants each are 3 MiB
_MOST_GPUS = 256
MOST_TENANTS: Final = 1000  # of one GPU
_MOST_TEXTS = 256

# Of `Gpu.compute_mode`, by NVML's names (nvml.h, nvmlComputeMode_t).
DEFAULT_MODE: Final = "default"
EXCLUSIVE_PROCESS: Final = "exclusive-process"
EXCLUSIVE_THREAD: Final = "exclusive-thread"
PROHIBITED: Final = "prohibited"


class NodeStateError(GpuShareError):
    """An answer that is not the state of a node, or of a version that cannot be read; the sentence says which."""


class NewerStateError(NodeStateError):
    """An answer of a newer gpu-share than this one."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One reason why a GPU is unhealthy."""

    source: Word  # xid, recovery, lost, gone, mig, nvml, mps, ...
    why: Text
    since: Moment
    comes_back: Text = ""  # completes "recovers ..."
    xid: Count | None = None


class ApplicationFault(msgspec.Struct, frozen=True, kw_only=True):
    """A program's fault, which leaves the GPU healthy and may have hit whoever else was on it."""

    xid: Count
    at: Moment
    tenants: Annotated[tuple[Text, ...], msgspec.Meta(max_length=MOST_TENANTS)] = ()  # namespace/pod/container


class MpsDaemon(msgspec.Struct, frozen=True, kw_only=True):
    """The MPS daemon of a GPU."""

    state: Word  # starting, ready, fault, failed, stopped, ...
    since: Moment
    why: Text = ""  # no container may start with it; empty if one may


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """What the programs of a container take of a GPU now."""

    memory_bytes: Count | None = None
    sm_ratio: Ratio | None = None  # of the time, in which a kernel of it ran
    processes: Count | None = None  # on the GPU


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """A container with a share of a GPU."""

    namespace: Name
    pod: Name
    container: Name
    parts: Part  # of `Gpu.parts`
    memory_limit_bytes: Count | None = None  # None where nothing is known of it
    thread_limit_ratio: Ratio | None = None  # None where nothing limits threads
    since: Moment | None = None  # None if it was there before anyone looked
    use: Use | None = None  # None where nobody has measured it

    @property
    def name(self) -> str:
        """How logs call it: namespace/pod/container."""
        return f"{self.namespace}/{self.pod}/{self.container}"


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """
    One GPU.

    Shares are counted in `parts`: vGPUs, or thousandths by DRA and while containers hold vGPUs of an earlier number. Of
    these, `granted` are held by containers, `hidden` are kept from new ones, and `free` can be allocated now: none of
    an unhealthy GPU.
    """

    uuid: Word
    index: Count  # NVML's number
    model: Text = ""
    resource: Resource = ""  # extended resource; empty where DRA allocates it
    device: Word = ""  # that shares of it are of, as policies name it: gpu, mig-1g.10gb, ...; empty where nobody says
    strategy: Word = ""  # mps, time-slicing, whole, ...
    allocation: Word = ""  # device-plugin, dra, ...
    healthy: bool = False
    since: Moment | None = None  # when it became healthy or unhealthy
    faults: Annotated[tuple[Fault, ...], msgspec.Meta(max_length=_MOST_TEXTS)] = ()
    application_fault: ApplicationFault | None = None  # the last one
    mps_daemon: MpsDaemon | None = None
    compute_mode: Word = ""  # default, exclusive-process, prohibited, ...; empty where the driver does not say
    memory_bytes: Count | None = None  # that shares are of
    limits_enforced_by: Word = ""  # mps, ...; empty where nothing holds a container to its share
    vgpus_per_gpu: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None  # that it is divided into; None by DRA
    parts: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    advertised: Count | None = None  # vGPUs that the kubelet is told are healthy; None by DRA, and of older plugins
    granted: Part | None = None
    hidden: Part | None = None
    outlived: Part = 0  # of what is granted, that processes use whose pods were deleted by force
    free: Part | None = None
    largest_free: Part | None = None  # the largest share that still fits
    tenants: Annotated[tuple[Tenant, ...], msgspec.Meta(max_length=MOST_TENANTS)] = ()
    # Containers that use it without a share of it, those first that take most; None where that is not known.
    outsiders: Annotated[tuple[Outsider, ...], msgspec.Meta(max_length=MOST_OUTSIDERS)] | None = None
    of_node: OfNode | None = None  # programs of the node that use it; None where that is not known, or there are none

    @property
    def is_instance(self) -> bool:
        """Whether it is a MIG instance."""
        return names_instance(self.uuid)

    @property
    def called(self) -> str:
        """Name it for messages: by NVML's number, and a MIG instance by its UUID too, as a GPU has several."""
        return f"GPU {self.index} {self.uuid}" if self.is_instance else f"GPU {self.index}"

    def ratio(self, parts: int) -> float:
        """Write some of its parts as a share of the GPU."""
        return parts / self.parts

    def milli(self, parts: int) -> int:
        """Count some of its parts in thousandths of the GPU, rounded down."""
        return MILLI_PER_GPU * parts // self.parts


class Ages(msgspec.Struct, frozen=True, kw_only=True):
    """How old each kind of facts is, in seconds; None if there is none of it."""

    health: Seconds | None = None
    tenants: Seconds | None = None
    mps: Seconds | None = None
    use: Seconds | None = None


class Toolkit(msgspec.Struct, frozen=True, kw_only=True):
    """How NVIDIA's container toolkit treats the variable NVIDIA_VISIBLE_DEVICES, by which containers can get GPUs."""

    accepts_variable: bool | None = None  # of containers that are not privileged; None where it is not known
    variable_needed: bool | None = None  # without it some containers with a share have no GPU


class NotRegistered(msgspec.Struct, frozen=True, kw_only=True):
    """An extended resource that the kubelet has not known for a while: no pod gets any of it."""

    resource: Resource
    why: Text  # with what to do


class NodeState(msgspec.Struct, frozen=True, kw_only=True):
    """All that a part of a node knows of the node."""

    version: int
    part: Word  # plugin or mps: who answers
    program: Text  # version of gpu-share
    node: Name
    driver: Text = ""
    ages: Ages = Ages()
    waiting: Text = ""  # why no GPU is shared yet; empty if one is
    tenants_unknown: Text = ""  # why nobody knows them; empty if they are known
    gpus: Annotated[tuple[Gpu, ...], msgspec.Meta(max_length=_MOST_GPUS)] = ()
    skipped: Annotated[tuple[Text, ...], msgspec.Meta(max_length=_MOST_TEXTS)] = ()  # GPUs that cannot be shared
    left_to_others: Count | None = None  # GPUs that are not in MIG mode; None where that is not known
    handover: Text = ""  # how containers get their GPU
    slices_not_published: Text = ""  # why DRA does not see its GPUs as they are; empty if it does, or is not used
    not_registered: Annotated[tuple[NotRegistered, ...], msgspec.Meta(max_length=_MOST_TEXTS)] = ()
    toolkit: Toolkit | None = None
    restart_needed: Annotated[tuple[Text, ...], msgspec.Meta(max_length=_MOST_TEXTS)] = ()  # changes of _cluster.yaml
    not_taken: Text = ""  # a change of it that this node cannot take up, and why, or why all of it is broken


class _Version(msgspec.Struct, frozen=True):
    version: int


_decode_version = msgspec.json.Decoder(_Version).decode
_decode = msgspec.json.Decoder(NodeState).decode


def write(state: NodeState) -> bytes:
    """Write what a node publishes."""
    return msgspec.json.encode(state)


def read(content: bytes) -> NodeState:
    """
    Read what a node has published.

    Raises:
        NodeStateError: If it is something else, or of a version that this program cannot read.
    """
    if len(content) > LARGEST_BYTES:
        raise NodeStateError(f"expected the state of a node, at most {LARGEST_BYTES} bytes, got {len(content)}")
    try:
        version = _decode_version(content).version
        if version != VERSION:
            which = "newer: use the gpu-share of the node's version" if version > VERSION else "older: upgrade the node"
            kind = NewerStateError if version > VERSION else NodeStateError
            raise kind(f"expected the state of a node in version {VERSION}, got {version}, which is {which}")
        return _decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error).replace("`", "")
        raise NodeStateError(f"expected the state of a node: {reason[:300]}") from None


# In what a node says of a GPU that it does not share since that is meant so.
LEFT_TO_OTHERS: Final = "its instances are left to NVIDIA's own plugin"


def left_out(skipped: Iterable[str]) -> tuple[str, ...]:
    """Choose, of the sentences on GPUs that a node does not share, those on GPUs that it should share."""
    return tuple(one for one in skipped if LEFT_TO_OTHERS not in one)
