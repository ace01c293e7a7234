"""
Which paths of the node a policy may list for pods with a share, and what a list says of one path.

A read-only mount can plant no link. A writable one can: whatever lies in it may be a link to anywhere on the node,
and the node follows it when the next pod names the path as its own volume. So a writable path is mounted itself, and
what lies in it by `subPath`, which the kubelet resolves inside the volume; it is no hostPath of any pod, in whichever
namespace.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from policies.form import Section, form
from policies.paths import is_within, meet

# Device files; the sockets of the kubelet and of container runtimes, which start containers with anything in them; what
# these read at each start of a container, and where they keep other containers' files; the state of gpu-share itself.
NEVER_LISTED = (
    "/dev",
    "/proc",
    "/sys",
    "/run",
    "/var/run",
    "/etc/cdi",
    "/etc/cni",
    "/etc/containerd",
    "/etc/crio",
    "/etc/docker",
    "/etc/kubernetes",
    "/etc/nvidia-container-runtime",
    "/etc/rancher",
    "/opt/cni",
    "/opt/containerd",
    "/var/cdi",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/crio",
    "/var/lib/docker",
    "/var/lib/etcd",
    "/var/lib/gpu-share",
    "/var/lib/k0s",
    "/var/lib/kubelet",
    "/var/lib/rancher",
    "/var/snap",
)
_NEVER_LISTED_ENDED = tuple(f"{directory}/" for directory in NEVER_LISTED)
_ABOVE_NEVER_LISTED = frozenset(
    directory[:at] or "/" for directory in NEVER_LISTED for at, character in enumerate(directory) if character == "/"
)
# What the node runs or obeys as root. The kubelet follows links in /var/log when it serves logs.
NEVER_WRITABLE = (
    "/bin",
    "/boot",
    "/etc",
    "/home/kubernetes",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt/bin",
    "/opt/nvidia",
    "/ostree",
    "/root",
    "/sbin",
    "/sysroot",
    "/usr",
    "/var/lib/cloud",
    "/var/lib/systemd",
    "/var/log",
    "/var/spool",
)
# The MPS pipes, which pods with a share mount and may write to, can be below /run, but for what is there of gpu-share.
_NEVER_PIPES = (
    *(one for one in (*NEVER_LISTED, *NEVER_WRITABLE) if one not in ("/run", "/var/run")),
    "/run/gpu-share",
    "/var/run/gpu-share",
)
_OF_ALL_PROGRAMS = ("/tmp", "/var/tmp")  # noqa: S108 - names, and nothing is written there
_MOST_LISTED = 100
_LONGEST_PATH = 200
_MODES_OF_ROOT = "is what the node itself runs or obeys, so it cannot be writable: list a directory of its own"


class HostPathRule(Section, frozen=True, kw_only=True):
    """A path of the node that pods with a share may mount as a hostPath volume."""

    path: Annotated[
        str,
        form(
            "an absolute path of letters, digits and ._@%+=-, with no . or .. and no / at its end",
            "/data/models",
            pattern=r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._@%+=-]+)+",
            max_length=_LONGEST_PATH,
        ),
        Meta(description="The path itself and, unless it is writable, all that lies in it."),
    ]
    writable: Annotated[
        bool,
        Meta(
            description="false: each mount must say readOnly: true. true: mounts may be writable, of the path itself "
            "alone; what lies in it is mounted by subPath."
        ),
    ] = False

    def __post_init__(self) -> None:
        """Check what would bypass every share."""
        for directory in NEVER_LISTED:
            if meet(self.path, directory):
                raise ValueError(f"path {_bypasses(self.path, directory)}")
        if self.writable and (root := next((one for one in NEVER_WRITABLE if meet(self.path, one)), None)):
            raise ValueError(f"path {_related(self.path, root)} {_MODES_OF_ROOT}")


HostPathRules = Annotated[tuple[HostPathRule, ...], Meta(max_length=_MOST_LISTED)]
Access = Literal["read-only", "writable", "in a writable path", "unlisted"]


class HostPathList(msgspec.Struct, frozen=True):
    """The rules of a policy, for many paths."""

    readable: frozenset[str]
    writable: frozenset[str]
    written: AbstractSet[str]  # by pods of any namespace

    @classmethod
    def of(cls, rules: Sequence[HostPathRule], written: AbstractSet[str]) -> "HostPathList":
        """Take the rules of one policy, and what `writable_in` says of all."""
        return cls(frozenset(rule.path for rule in rules if not rule.writable), writable_in(rules), written)

    def access(self, path: str) -> Access:
        """Say how a normal *path* may be mounted, by look-ups of what it lies in, however much is listed."""
        above, is_writable = _above(path), path in self.writable
        is_listed = is_writable or path in self.readable
        if not is_listed and self.readable.isdisjoint(above) and self.writable.isdisjoint(above):
            return "unlisted"  # whoever may write there: that is no matter of this policy's pods
        if not self.written.isdisjoint(above):
            return "in a writable path"
        return "writable" if is_writable else "read-only"

    def written_above(self, path: str) -> str:
        """Name the path that pods may write and a normal *path* lies in; empty if there is none."""
        return next((one for one in _above(path) if one in self.written), "")


def _above(path: str) -> list[str]:
    """List the directories that a normal *path* lies in, as far down as a rule's path can be."""
    return [path[:at] for at, character in enumerate(path[: _LONGEST_PATH + 1]) if character == "/" and at]


def writable_in(rules: Iterable[HostPathRule]) -> frozenset[str]:
    """Return the paths that *rules* list as writable."""
    return frozenset(rule.path for rule in rules if rule.writable)


def conflicts(rules: Sequence[HostPathRule], *, pipe_directory: str | None) -> Iterator[str]:
    """Yield what is wrong with rules that are each valid alone; a rule costs as much as there are writable ones."""
    seen: set[str] = set()
    writable = [rule.path for rule in rules if rule.writable]
    for rule in rules:
        if rule.path in seen:
            yield f"{rule.path} is here twice: remove one of the two"
        seen.add(rule.path)
        if pipe_directory is not None and meet(rule.path, pipe_directory):
            yield _bypasses(rule.path, pipe_directory)
        for other in writable:
            if rule.path != other and is_within(rule.path, other):
                yield f"{rule.path} lies in {other}, where a pod may put a link in its place: remove one of the two"


def fault_of_pipes(path: str) -> str:
    """Say why *path* cannot hold the MPS pipes; empty if it can."""
    if path not in _OF_ALL_PROGRAMS and not any(meet(path, one) for one in _NEVER_PIPES):
        return ""
    return f"{path} is, holds or lies in what is not for pods to write to: choose a directory for the pipes alone"


def is_never_listed(path: str) -> bool:
    """Whether no policy can list the normal *path*."""
    return path in _ABOVE_NEVER_LISTED or f"{path}/".startswith(_NEVER_LISTED_ENDED)


def _bypasses(path: str, directory: str) -> str:
    return f"{_related(path, directory)} can bypass every share, so no pod with a share may mount it: remove it"


def _related(path: str, directory: str) -> str:
    if path == directory:
        return path
    return f"{path}, which {'lies in' if is_within(path, directory) else 'holds'} {directory},"
