"""Attempts with privileges, with files where shares meet MPS, with graphics, and with many small shares."""

from collections.abc import Iterator
from typing import Any

from tests.bypass.attempt import GRANT, Attempt, by_policy, by_webhook, forged, variable, with_spec
from tests.policies.pods import container, limited, pod

CAPABILITIES = (
    "DAC_READ_SEARCH",
    "BPF",
    "PERFMON",
    "CAP_BPF",
    "cap_perfmon",
    "SYS_BOOT",
    "CHECKPOINT_RESTORE",
    "LINUX_IMMUTABLE",
    "IPC_OWNER",
    "SYSLOG",
    "SYS_TIME",
    "SYS_PACCT",
    "SYS_TTY_CONFIG",
    "MAC_ADMIN",
    "MAC_OVERRIDE",
    "AUDIT_CONTROL",
    "AUDIT_READ",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "CAP_CAP_NET_ADMIN",
    "TOMORROW",
    " NET_ADMIN",
    "",
)
HARMLESS_CAPABILITIES = ("NET_ADMIN", "SYS_PTRACE", "IPC_LOCK", "SYS_NICE", "MKNOD", "sys_chroot", "CAP_NET_RAW")
MESSAGE_PATHS = (
    "/dev/shm",
    "/dev/shm/x",
    "//dev/./shm/x",
    "dev/shm/x",
    "/tmp/nvidia-mps",
    "/tmp//nvidia-mps/control",
    "/tmp/nvidia-mps/GPU-0/control",
    "/x/../dev/shm/y",
)
DRAWING = ("all", "graphics", "compute,graphics", "compute, utility, display", "ngx", "COMPUTE", "$(CAPABILITIES)", "a")
HARMLESS_DRIVER_CAPABILITIES = ("compute,utility", "utility, compute", "video,compat32,compute", "", ",compute")


def privileges() -> list[Attempt]:
    """List every attempt."""
    return [*_capabilities(), *_paths(), *_graphics(), *_late(), *_sums()]


def _capabilities() -> Iterator[Attempt]:
    for name in CAPABILITIES:
        added = {"capabilities": {"add": ["CHOWN", name]}}
        yield by_webhook(
            f"the capability {name!r}", "PrivilegedContainer", pod("0.1", container(securityContext=added))
        )
        late = forged(securityContext=added)
        yield by_policy(f"the capability {name!r} that another webhook adds", "a capability that reaches", late)
    for name in HARMLESS_CAPABILITIES:
        added = {"capabilities": {"add": [name], "drop": ["ALL"]}}
        yield Attempt(f"the capability {name}", pod("0.2", container(securityContext=added)), "harmless")


def _paths() -> Iterator[Attempt]:
    code, late = "ConflictingRequest", "terminationMessagePath"
    for path in MESSAGE_PATHS:
        message: dict[str, Any] = {"terminationMessagePath": path}
        yield by_webhook(f"the last message at {path}", code, pod("0.1", container(**message)))
        yield by_policy(f"the last message at {path} by another webhook", late, forged(**message))
    beside = container("b", terminationMessagePath="/dev/shm/x")
    yield by_webhook("the last message of a container beside the share", code, pod("0.1", container(), beside))
    yield Attempt("a last message elsewhere", pod("0.2", container(terminationMessagePath="/dev/shmx/log")), "harmless")
    disk = [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]
    for path in ("/dev/shm/disk", "/tmp/nvidia-mps/control"):
        devices: dict[str, Any] = {"volumeDevices": [{"name": "disk", "devicePath": path}]}
        yield by_webhook(f"a block device at {path}", code, pod("0.1", container(**devices), volumes=disk))
        yield by_policy(
            f"a block device at {path} by another webhook", late, with_spec(forged(**devices), volumes=disk)
        )
    elsewhere = container(volumeDevices=[{"name": "disk", "devicePath": "/dev/xvda"}])
    yield Attempt("a block device elsewhere", pod("0.2", elsewhere, volumes=disk), "harmless")


def _graphics() -> Iterator[Attempt]:
    name, code = "NVIDIA_DRIVER_CAPABILITIES", "ReservedEnvironment"
    for value in DRAWING:
        env = [variable(name, value)]
        yield by_webhook(f"{name} of {value!r} under MPS", code, pod("0.1", container(env=env)))
        yield by_policy(f"{name} of {value!r} by another webhook", "MPS limits no graphics", forged(env=env))
    reference = [variable(name, None, valueFrom={"configMapKeyRef": {"name": "a", "key": "b"}})]
    yield by_webhook(f"{name} by reference", code, pod("0.1", container(env=reference)))
    yield by_policy(f"{name} by reference, by another webhook", "MPS limits no graphics", forged(env=reference))
    twice = [variable(name, "compute"), variable(name, "all")]
    yield by_webhook(f"{name} given twice", code, pod("0.1", container(env=twice)))
    for value in HARMLESS_DRIVER_CAPABILITIES:
        env = [variable(name, value)]
        yield Attempt(f"{name} of {value!r}", pod("0.2", container(env=env)), "harmless")
    beside = container("b", env=[variable(name)])
    yield Attempt(f"{name} where no GPU is seen", pod("0.2", container(), beside), "harmless")
    stripped = pod("0.2", container(env=[variable(name)]))
    yield Attempt(f"{name} where the policy says strip", stripped, "harmless", rules="environment: {reserved: strip}")


def _late() -> Iterator[Attempt]:
    hidden = "must have NVIDIA_VISIBLE_DEVICES=void"
    for group in ("containers", "initContainers"):
        late = forged()
        late["spec"].setdefault(group, []).append(container("late"))
        yield by_policy(f"one more of the {group} that another webhook adds", hidden, late)
    sidecar = container("late", restartPolicy="Always", env=[variable("A")])
    yield by_policy("a sidecar that another webhook adds", hidden, with_spec(forged(), initContainers=[sidecar]))
    # On a node of its own choice, as a mirror pod must have; the kubelet would not start it.
    mirror = {"kubernetes.io/config.mirror": "0123", "kubernetes.io/config.source": "file"}
    none = "granted it none"
    yield by_policy("an annotation and that of a mirror pod", none, pod("0.2", annotations=mirror, nodeName="n"))
    limit = pod(None, limited("main", "9"), annotations=mirror, nodeName="n")
    yield by_policy("a limit and the annotation of a mirror pod", none, limit)
    grant = with_spec(forged(), nodeName="n", hostPID=True)
    grant["metadata"]["annotations"] |= mirror
    yield by_policy("a forged grant and the annotation of a mirror pod", "hostPID", grant)


def _sums() -> Iterator[Attempt]:
    above = "PodShareAboveMaximum"
    for share, count in (("0.101", 9), ("0.001", 40), ("0.15", 6), ("11%", 8)):
        many = [container(f"c{number}") for number in range(count)]
        named = {f"container.gpu-share.dev/c{number}": share for number in range(count)}
        on, least = pod(None, *many, annotations=named), "share: {minimum: '0.001'}"
        yield by_webhook(f"{count} containers of {share}, each rounded up", above, on, least)
    named = {"container.gpu-share.dev/s": "0.11", "container.gpu-share.dev/i": "0.81"}
    first = [container("s", restartPolicy="Always"), container("i")]
    beside = pod("0.1", initContainers=first, annotations=named)
    yield by_webhook("a sidecar and an init container, rounded up", above, beside)
    mixed = pod("0.71", container(), limited("b", "3"))
    yield by_webhook("a share that is rounded up beside a limit", above, mixed)
    half = "share: {maximum: '0.45'}"
    yield by_webhook("a share that is rounded up past its maximum", "ShareAboveMaximum", pod("0.45"), half)
    yield by_webhook(
        "a limit past a maximum between two vGPUs", "ShareAboveMaximum", pod(None, limited("main", 5)), half
    )
    yield by_policy("a limit that a forged grant rounds down", "not what gpu-share.dev/grant says", _rounded_down())


def _rounded_down() -> dict[str, Any]:
    made = forged()
    made["metadata"]["annotations"]["gpu-share.dev/grant"] = GRANT % (1, "0.15")
    return made
