"""The fields of a pod that the rules look at. Everything else is ignored, and `None` means that it is not there."""

from typing import Annotated

import msgspec

from policies.errors import quoted

# PATH_MAX of Linux: a pod with a longer one would never start, and to clean one takes many times its size of memory.
PathText = Annotated[str, msgspec.Meta(max_length=4096)]
CapabilityName = Annotated[str, msgspec.Meta(max_length=256)]  # the longest has 22


class Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A mapping in a pod. Unknown fields are the API server's business."""


class Metadata(Part, frozen=True, gc=False):
    """Names and what users and webhooks write on a pod."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


NO_METADATA = Metadata()


class FieldRef(Part, frozen=True, gc=False):
    """A field of the pod."""

    field_path: str = ""


class Reference(Part, frozen=True, gc=False):
    """A reference whose fields do not matter here."""


class ValueFrom(Part, frozen=True, gc=False):
    """What a variable is taken from. ConfigMaps, Secrets and files are not told apart."""

    field_ref: FieldRef | None = None
    resource_field_ref: Reference | None = None


class EnvFrom(Part, frozen=True, gc=False):
    """One entry of `envFrom`: all keys of a ConfigMap or Secret, whichever it is."""

    prefix: str | None = None


class Variable(Part, frozen=True, gc=False):
    """One entry of `env`."""

    name: str
    value: str | None = None
    value_from: ValueFrom | None = None


class Resources(Part, frozen=True, gc=False):
    """What a container asks for. Quantities are texts or numbers, not yet parsed."""

    limits: dict[str, str | int | float] | None = None
    requests: dict[str, str | int | float] | None = None


class VolumeMount(Part, frozen=True, gc=False):
    """Where a container sees a volume."""

    name: str
    mount_path: PathText
    sub_path: str | None = None
    sub_path_expr: str | None = None
    read_only: bool | None = None
    recursive_read_only: str | None = None
    mount_propagation: str | None = None


class VolumeDevice(Part, frozen=True, gc=False):
    """Where a container sees a volume as a block device."""

    device_path: PathText = ""


class Capabilities(Part, frozen=True, gc=False):
    """What a container may do beyond its user's rights."""

    add: list[CapabilityName] | None = None


class SecurityContext(Part, frozen=True, gc=False):
    """Of a container."""

    privileged: bool | None = None
    capabilities: Capabilities | None = None


class Exec(Part, frozen=True, gc=False):
    """A command that the kubelet runs in a container."""

    command: list[str] | None = None


class Handler(Part, frozen=True, gc=False):
    """What a probe or a hook does."""

    exec: Exec | None = None


class Lifecycle(Part, frozen=True, gc=False):
    """What runs when a container starts and stops."""

    post_start: Handler | None = None
    pre_stop: Handler | None = None


class Container(Part, frozen=True, gc=False):
    """An app container, an init container, a sidecar or an ephemeral container."""

    name: str
    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[Variable] | None = None
    env_from: list[EnvFrom] | None = None
    resources: Resources | None = None
    volume_mounts: list[VolumeMount] | None = None
    volume_devices: list[VolumeDevice] | None = None
    termination_message_path: PathText | None = None
    security_context: SecurityContext | None = None
    restart_policy: str | None = None
    lifecycle: Lifecycle | None = None
    startup_probe: Handler | None = None
    liveness_probe: Handler | None = None
    readiness_probe: Handler | None = None


class HostPath(Part, frozen=True, gc=False):
    """A directory of the node."""

    path: PathText
    type: str | None = None


class EmptyDir(Part, frozen=True, gc=False):
    """Scratch space, on disk or in memory."""

    size_limit: str | int | float | None = None


class Volume(Part, frozen=True, gc=False):
    """A volume, and those of its kinds that matter here."""

    name: str
    host_path: HostPath | None = None
    empty_dir: EmptyDir | None = None
    ephemeral: Reference | None = None
    flex_volume: Reference | None = None
    git_repo: Reference | None = None


class OwnToleration(Part, frozen=True, gc=False):
    """A toleration of the pod. Empty fields are dropped by the API server."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class ResourceClaim(Part, frozen=True, gc=False):
    """Devices by Dynamic Resource Allocation: of which kind, only the claim says."""

    name: str


class Sysctl(Part, frozen=True, gc=False):
    """A parameter of the kernel, set in the pod's own namespaces."""

    name: str = ""


class PodSecurityContext(Part, frozen=True, gc=False):
    """Of the pod as a whole."""

    sysctls: list[Sysctl] | None = None


class PodSpec(Part, frozen=True, gc=False):
    """What runs, and where."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    ephemeral_containers: list[Container] | None = None
    volumes: list[Volume] | None = None
    host_ipc: bool | None = msgspec.field(default=None, name="hostIPC")
    host_pid: bool | None = msgspec.field(default=None, name="hostPID")
    host_users: bool | None = None
    security_context: PodSecurityContext | None = None
    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    tolerations: list[OwnToleration] | None = None
    runtime_class_name: str | None = None
    scheduler_name: str | None = None
    resource_claims: list[ResourceClaim] | None = None


class Pod(Part, frozen=True, gc=False):
    """A pod as it stands in a request, a manifest or a template."""

    spec: PodSpec
    metadata: Metadata = NO_METADATA


def unbound(pod: Pod) -> Pod:
    """Give a pod of a cluster as it was before the scheduler chose its node."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=None))


class Slot(msgspec.Struct, frozen=True, gc=False):
    """A container and where it stands in its pod."""

    group: str  # `containers`, `initContainers` or `ephemeralContainers`
    index: int
    name: str
    container: Container
    runs_on: bool  # beside what comes after it, as app containers and sidecars do


def slots(pod: Pod) -> list[Slot]:
    """All containers in the order in which the kubelet starts them, but for ephemeral ones, which come later."""
    apps = [Slot("containers", index, one.name, one, True) for index, one in enumerate(pod.spec.containers or ())]  # noqa: FBT003 - runs_on
    if not pod.spec.init_containers:
        return apps
    return [
        Slot("initContainers", index, one.name, one, one.restart_policy == "Always")
        for index, one in enumerate(pod.spec.init_containers)
    ] + apps


def named(slot: Slot) -> str:
    """How messages call a container."""
    return f"Container {quoted(slot.name)}"
