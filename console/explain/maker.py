"""What makes pods: the object of a name, or where it cannot be read, what its pods and events show of it."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from console.api_server import ApiServer, UnseenError
from console.explain.beside import Beside
from console.explain.crowd import Crowd
from console.explain.workload import Workload
from console.look import unseen
from console.owners import KINDS, MORE_KINDS, NOT_FOUND, VOLCANO_JOB, owner
from console.seen import Unseen
from console.words import Shown
from policies.errors import GpuShareError

_ALL: Final = {**KINDS, **MORE_KINDS}
_NAMESAKES: Final = {"job": (VOLCANO_JOB,)}  # which not every cluster has


class NotFoundError(GpuShareError):
    """Nothing of that name, or nothing that can be seen; the sentence says what was looked for."""


class Maker(NamedTuple):
    """An object that makes pods."""

    kind: str
    workload: Workload  # empty where it cannot be read
    failures: tuple[str, ...]  # why pods of it were not created


class _Read(NamedTuple):
    resource: str
    workload: Workload
    error: UnseenError | None = None  # why it cannot be read
    is_guess: bool = False  # whether the cluster may not even know its kind


def find_maker(api: ApiServer, kind: str, name: str, *, beside: Beside, crowds: Mapping[str, Crowd]) -> Maker:
    """
    Find which kind of object has the *name*; one that cannot be read counts where it has pods, or some were denied.

    *crowds* are the pods of each kind that it may be of.

    Raises:
        NotFoundError: If there is none, or nothing shows that there is.
    """
    unread: dict[str, _Read] = {}
    for one, crowd in crowds.items():
        read = _read(api, one, beside.namespace, name)
        if read is None:
            continue
        failures = beside.failures(one, name, crowd.created)
        is_shown = bool(failures or crowd.count)
        if read.error is not None and (is_shown or not read.is_guess):
            unread[one] = read
        if is_shown or read.error is None:
            if unread:
                beside.note(_hidden(unread, beside.namespace, name))
            return Maker(one, read.workload, failures)
    place = f"{beside.namespace}/{Shown(name)}"
    if unread:
        hidden = _hidden(unread, beside.namespace, name).sentence
        raise NotFoundError(hidden if kind else f"there is no pod {place}, and no workload can be seen: {hidden}")
    what = f"there is no {kind.title() or 'pod, nor a workload,'} {place}"
    denied = "one that was denied left nothing behind, and whoever created it was told why"
    raise NotFoundError("; ".join((what, denied, *beside.quotas())))


def _read(api: ApiServer, kind: str, namespace: str, name: str) -> _Read | None:
    """Read an object of a kind, or of the other one that is called so; None if there is none."""
    for one in (_ALL[kind], *_NAMESAKES.get(kind, ())):
        try:
            return _Read(one.resource, owner(api, one, namespace, name))
        except UnseenError as error:
            if error.status != NOT_FOUND:
                is_namesake = one != _ALL[kind]
                resource = f"{one.resource}.{one.version.partition('/')[0]}" if is_namesake else one.resource
                return _Read(resource, Workload(), error, is_guess=is_namesake)
    return None


def _hidden(unread: Mapping[str, _Read], namespace: str, name: str) -> Unseen:
    """Say once which objects cannot be read, and why the first one cannot."""
    what = f"{', '.join(one.title() for one in unread)} {namespace}/{Shown(name)}"
    right = f"get {', '.join(one.resource for one in unread.values())} in namespace {namespace}"
    why = next(one.error for one in unread.values() if one.error is not None)
    return unseen(what, why, right)
