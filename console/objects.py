"""
Objects of Kubernetes as far as the view needs them.

All of their texts that are free are `Shown`, but for those that rules judge: cut, or in one line, it is another text.
"""

from typing import Annotated, Generic, TypeVar

import msgspec

from console.tolerations import Taint, Toleration
from console.words import Shown
from policies.node_values import Name
from policies.policy_volume import ConfigMapVolume

T = TypeVar("T")


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of an object; what is not known of it is ignored."""


class Owner(_Part, frozen=True, kw_only=True):
    """Who made an object."""

    kind: Shown = Shown("")
    name: Shown = Shown("")
    uid: str = ""
    controller: bool = False


class Metadata(_Part, frozen=True, kw_only=True):
    """What every object has."""

    name: Shown = Shown("")
    namespace: Shown = Shown("")
    uid: Shown = Shown("")
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: Shown | None = None
    deletion_timestamp: Shown | None = None  # by when it should be gone
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[Shown, ...] = ()
    owner_references: tuple[Owner, ...] = ()


class Object(_Part, frozen=True, kw_only=True):
    """Any object."""

    metadata: Metadata = Metadata()


class Page(_Part, Generic[T], frozen=True, kw_only=True):
    """A part of a list, and how to get the next one."""

    class Continue(_Part, frozen=True, kw_only=True):
        """Where the list goes on."""

        next: Annotated[str, msgspec.Meta(max_length=4096)] = msgspec.field(default="", name="continue")

    kind: str = ""
    metadata: Continue = Continue()
    items: tuple[T, ...] | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def is_list(self) -> bool:
        """Whether it is one: what is none has no items either, and is not empty for that."""
        return self.items is not msgspec.UNSET or self.kind.endswith("List")


class Condition(_Part, frozen=True, kw_only=True):
    """A condition of a node or pod."""

    type: str = ""
    status: str = ""
    reason: Shown = Shown("")
    message: Shown = Shown("")
    last_transition_time: Shown | None = None


class NodeSpec(_Part, frozen=True, kw_only=True):
    """A node as it is wanted."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeInfo(_Part, frozen=True, kw_only=True):
    """Versions on a node, and what it is."""

    kubelet_version: Shown = Shown("")
    container_runtime_version: Shown = Shown("")
    architecture: Shown = Shown("")


class NodeStatus(_Part, frozen=True, kw_only=True):
    """A node as it is."""

    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()
    node_info: NodeInfo = NodeInfo()


class Node(Object, frozen=True, kw_only=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Port(_Part, frozen=True, kw_only=True):
    """A port of a container."""

    name: str = ""
    container_port: int = 0


class Variable(_Part, frozen=True, kw_only=True):
    """An environment variable of a container, to be judged and not shown."""

    name: str = ""
    value: str = ""


class Resources(_Part, frozen=True, kw_only=True):
    """What a container asks for."""

    limits: dict[str, str] = {}


class Mount(_Part, frozen=True, kw_only=True):
    """Where a container has a volume."""

    name: str = ""
    mount_path: str = ""  # to be judged, and not shown as it is
    sub_path: str = ""
    sub_path_expr: str = ""

    @property
    def is_part(self) -> bool:
        """Whether it is one file or directory of the volume."""
        return bool(self.sub_path or self.sub_path_expr)


class Capabilities(_Part, frozen=True, kw_only=True):
    """What root may do in a container."""

    add: tuple[str, ...] = ()


class SecurityContext(_Part, frozen=True, kw_only=True):
    """What a container may do."""

    privileged: bool = False
    capabilities: Capabilities = Capabilities()


class Container(_Part, frozen=True, kw_only=True):
    """A container of a pod."""

    name: Name
    image: Shown = Shown("")
    command: tuple[str, ...] = ()  # to be judged, and not shown as they are; likewise the next ones
    args: tuple[str, ...] = ()
    env: tuple[Variable, ...] = ()
    ports: tuple[Port, ...] = ()
    resources: Resources = Resources()
    volume_mounts: tuple[Mount, ...] = ()
    security_context: SecurityContext = SecurityContext()


class HostPath(_Part, frozen=True, kw_only=True):
    """A path of the node."""

    path: Shown = Shown("")


class Volume(ConfigMapVolume, frozen=True, kw_only=True, rename="camel"):
    """A volume of a pod."""

    host_path: HostPath | None = None


class PodSpec(_Part, frozen=True, kw_only=True):
    """A pod as it is wanted."""

    node_name: Shown = Shown("")
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")
    scheduler_name: Shown = Shown("")
    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    volumes: tuple[Volume, ...] = ()
    priority: int | None = None
    priority_class_name: Shown = Shown("")
    preemption_policy: Shown = Shown("")


class NotRunning(_Part, frozen=True, kw_only=True):
    """Why a container does not run, or how it ended."""

    reason: Shown = Shown("")
    message: Shown = Shown("")
    exit_code: int | None = None
    started_at: Shown | None = None
    finished_at: Shown | None = None


class ContainerState(_Part, frozen=True, kw_only=True):
    """How a container is."""

    running: dict[str, Shown] | None = None  # since when, as startedAt
    waiting: NotRunning | None = None
    terminated: NotRunning | None = None


class ContainerStatus(_Part, frozen=True, kw_only=True):
    """How a container is, and how it was."""

    name: Shown = Shown("")
    image_id: str = msgspec.field(default="", name="imageID")  # to be judged, and not shown as it is
    ready: bool = False
    restart_count: int = 0  # since its pod was made
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodStatus(_Part, frozen=True, kw_only=True):
    """A pod as it is."""

    phase: Shown = Shown("")
    reason: Shown = Shown("")
    message: Shown = Shown("")
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(Object, frozen=True, kw_only=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
