"""
The cluster as it was seen at one moment: values that all commands read, with what could not be seen beside them.

Texts are `Shown`, and harmless. A figure that is not known is None, never 0.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from console.grant import Grant
from console.objects import Condition, NodeInfo, Pod
from console.taints import CORDONED, NOT_READY, conditions
from console.tolerations import Taint
from console.words import Shown, several
from policies.node_state import Gpu, NodeState, Tenant
from policies.quantity import whole

COMPONENT_LABEL: Final = "app.kubernetes.io/component"  # of our own pods
ON_NODES: Final = ("plugin", "mps")  # the parts of a node, in the order in which they are asked


# What is looked at, as `Unseen.what` begins; the last is what comes of asking the pods of gpu-share.
ALL_NODES: Final = "nodes"
OUR_PODS: Final = "the pods of gpu-share"
SHARED_PODS: Final = "pods with a share"
DENIED_PODS: Final = "denied pods"
STATES: Final = "what nodes say of themselves"

STALE_SECONDS: Final = 20.0  # health that is older is not known any more, as in the metrics of a node


class Unseen(msgspec.Struct, frozen=True, kw_only=True):
    """Something that could not be seen."""

    what: str
    why: str
    right: str = ""  # by which it could; empty if no right is missing

    @property
    def sentence(self) -> str:
        """What, why, and by which right it could."""
        return f"{self.what}: {self.why}{f'; the right to {self.right} is missing' if self.right else ''}"


class Unasked(Unseen, frozen=True, kw_only=True):
    """Something that was not asked at all, since the API server has too much to do: nothing is wrong with it."""


class Newer(Unseen, frozen=True, kw_only=True):
    """Something that a newer gpu-share said, and this one cannot read: nothing is wrong with it."""


class SeenNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node whose GPUs are shared, or should be."""

    name: str
    labelled: bool | None = None  # None if the node itself cannot be read
    ready: bool | None = None
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    conditions: tuple[Condition, ...] = ()
    kubelet: str = ""
    runtime: str = ""  # and its version: containerd://2.1.4
    labels: dict[str, str] = {}
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    state: NodeState | None = None  # None if no part of it answers
    silent: Unseen | None = None  # why not; None where no part runs there

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """Its GPUs, as far as it tells of them."""
        return self.state.gpus if self.state else ()

    @property
    def closed(self) -> tuple[str, ...]:
        """Why no new pod comes to it, whatever is free; empty if pods do, or nobody knows."""
        told = (("not Ready", self.ready is False), ("cordoned", self.unschedulable))
        others = (one for one in conditions(self.taints) if one not in (CORDONED, *NOT_READY))
        return (*(word for word, is_so in told if is_so), *others)

    @property
    def has_driver(self) -> bool:
        """Whether it tells the version of a driver, which simulated GPUs do not have."""
        return self.state is not None and self.state.driver[:1].isdigit()

    @property
    def silence(self) -> str:
        """Why it says nothing of itself, where it does not."""
        return self.silent.why if self.silent else "no part of gpu-share runs there"

    @property
    def is_fresh(self) -> bool:
        """Whether what it says of its GPUs holds now."""
        age_seconds = self.state.ages.health if self.state else None
        return age_seconds is not None and age_seconds <= STALE_SECONDS

    @property
    def unheard(self) -> str:
        """Why nobody knows how its GPUs are now; empty if it says so, or that it shares none yet."""
        if self.state is None:
            return self.silence
        age_seconds = self.state.ages.health
        if self.state.waiting or self.is_fresh:
            return ""
        if age_seconds is None:
            return "gpu-share plugin has not said yet how the GPUs are"
        return f"gpu-share plugin has been silent for {age_seconds:.0f} s"

    @property
    def trouble(self) -> str:
        """Why what it says of its GPUs, if anything, is not what holds now; empty if it is."""
        state = self.state
        if state is None:
            return f"nothing is known of its GPUs: {self.silent.why}" if self.silent else self.silence
        if state.waiting:
            return f"no GPU is shared yet: {state.waiting}"
        if self.unheard:
            was_heard = state.ages.health is not None
            return f"{self.unheard}{': what follows is what it said last' if was_heard else ''}"
        return f"tenants unknown: {state.tenants_unknown}" if state.tenants_unknown else ""

    @property
    def not_advertised(self) -> dict[str, str]:
        """Why Kubernetes gives nothing of a resource, whatever is free of its GPUs; that of DRA is ""."""
        if self.state is None:
            return {}
        found = {"": self.state.slices_not_published} if self.state.slices_not_published else {}
        has_room = {gpu.resource for gpu in self.state.gpus if gpu.resource and gpu.largest_free}
        if self.labelled is not None:  # the node itself was read
            none = {one for one in has_room if whole(self.allocatable.get(one, "0")) == 0}
            found |= dict.fromkeys(sorted(none), "the node's allocatable has none of it")
        return found | {one.resource: one.why for one in self.state.not_registered}


DISRUPTED: Final = "DisruptionTarget"  # condition of a pod that is evicted or preempted, or whose node is gone


class SeenPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod with a share."""

    pod: Pod
    grant: Grant | None  # None if its annotation cannot be read

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.pod.metadata.namespace

    @property
    def name(self) -> str:
        """Its name."""
        return self.pod.metadata.name

    @property
    def node(self) -> str:
        """Its node; empty while it has none."""
        return self.pod.spec.node_name

    @property
    def phase(self) -> str:
        """Its phase, or that it is about to end."""
        is_ending = self.pod.metadata.deletion_timestamp is not None
        return "Terminating" if is_ending else self.pod.status.phase

    @property
    def waits(self) -> bool:
        """Whether it has no node yet; on one it holds its share already, while its image comes."""
        return self.phase == "Pending" and not self.node

    @property
    def why(self) -> str:
        """What Kubernetes says of a pod that does not run; empty if it says nothing."""
        status = self.pod.status
        if status.message or status.reason:
            return ": ".join(filter(None, (status.reason, status.message)))
        for condition in status.conditions:
            if condition.type == "PodScheduled" and condition.status == "False":
                return condition.message or condition.reason
            if condition.type == DISRUPTED and condition.status == "True" and self.phase in ("Failed", "Terminating"):
                return ": ".join(filter(None, (condition.reason, condition.message)))
        for container in (*status.init_container_statuses, *status.container_statuses):
            for held in (container.state.waiting, container.state.terminated):
                if held is not None and held.reason not in ("", "Completed"):
                    return ": ".join(filter(None, (held.reason, held.message)))
        return ""


class Denial(msgspec.Struct, frozen=True, kw_only=True):
    """A controller whose pods are denied."""

    namespace: str
    kind: str
    name: str
    message: str
    count: int
    last: Shown | None  # when it was denied last
    uid: str = ""  # of the controller
    api_version: Shown = Shown("")  # likewise


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    context: str
    at: str  # ISO 8601, UTC, by the API server's clock where it says the time
    ahead_seconds: float = 0.0  # by which the clock of this machine is ahead of that; below 0 where it is behind
    namespace: str = ""  # whose pods were looked for; empty for all
    nodes: tuple[SeenNode, ...] = ()
    others: tuple[SeenNode, ...] = ()  # nodes that have nothing to do with shares, and have devices of other plugins
    listed: frozenset[str] = frozenset()  # names of all nodes; none where they are not known
    node_info: dict[str, NodeInfo] = {}  # of all nodes, by name; likewise
    pods: tuple[SeenPod, ...] = ()
    denials: tuple[Denial, ...] = ()
    parts: tuple[Pod, ...] = ()  # pods of gpu-share itself
    unseen: tuple[Unseen, ...] = ()

    def hidden(self, what: str) -> Unseen | None:
        """Give the reason why nothing is known of *what*, such as SHARED_PODS; None if it was seen."""
        if what == STATES:
            return self.hidden(OUR_PODS) or self._silence()
        return next((one for one in self.unseen if one.what.startswith(what)), None)

    def _silence(self) -> Unseen | None:
        """Say of how many nodes that are to share GPUs nobody knows how these are now, and of one why."""
        nodes = [one for one in self.nodes if one.labelled is not False]
        unheard = [one for one in nodes if one.unheard]
        if not unheard:
            return None
        # What a right would show comes first: it can be asked for.
        first = next((one for one in unheard if one.silent and one.silent.right), unheard[0])
        why = f"{len(unheard)} of {several(len(nodes), 'node')} not seen: {first.name}: {first.unheard}"
        return Unseen(what=STATES, why=why, right=first.silent.right if first.silent else "")

    @property
    def parts_to_run(self) -> tuple[Pod, ...]:
        """Its own pods that are to run: what has ended stays listed where it was evicted, or a node was shut down."""
        wanted = (one for one in self.parts if one.metadata.deletion_timestamp is None)
        return tuple(one for one in wanted if one.status.phase not in ("Failed", "Succeeded"))

    def tenants(self) -> Iterator[tuple[SeenNode, Gpu, Tenant]]:
        """Yield who is on which GPU."""
        for node in self.nodes:
            for gpu in node.gpus:
                for tenant in gpu.tenants:
                    yield node, gpu, tenant
