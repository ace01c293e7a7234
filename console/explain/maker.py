"""What makes pods: the object of a name, or where it cannot be read, what its pods and events show of it."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from console.api_server import ApiServer, UnseenError
from console.explain.beside import Beside
from console.explain.crowd import Crowd
from console.explain.workload import Workload
from console.look import unseen
from console.owners import KINDS, MORE_KINDS, NOT_FOUND, owner
from console.seen import Unseen
from console.words import Shown
from policies.errors import GpuShareError

_ALL: Final = {**KINDS, **MORE_KINDS}


class NotFoundError(GpuShareError):
    """Nothing of that name, or nothing that can be seen; the sentence says what was looked for."""


class Maker(NamedTuple):
    """An object that makes pods."""

    kind: str
    workload: Workload  # empty where it cannot be read
    failures: tuple[str, ...]  # why pods of it were not created


def find_maker(api: ApiServer, kind: str, name: str, *, beside: Beside, crowds: Mapping[str, Crowd]) -> Maker:
    """
    Find which kind of object has the *name*; one that cannot be read counts where it has pods, or some were denied.

    *crowds* are the pods of each kind that it may be of.

    Raises:
        NotFoundError: If there is none, or nothing shows that there is.
    """
    unread: dict[str, UnseenError] = {}
    for one, crowd in crowds.items():
        try:
            found = owner(api, one, beside.namespace, name)
        except UnseenError as error:
            if error.status == NOT_FOUND:
                continue
            unread[one], found = error, Workload()
        failures = beside.failures(one, name, crowd.created)
        if one not in unread or failures or crowd.count:
            if unread:
                beside.note(_hidden(unread, beside.namespace, name))
            return Maker(one, found, failures)
    place = f"{beside.namespace}/{Shown(name)}"
    if unread:
        hidden = _hidden(unread, beside.namespace, name).sentence
        raise NotFoundError(hidden if kind else f"there is no pod {place}, and no workload can be seen: {hidden}")
    what = f"there is no {kind.title() or 'pod, nor a workload,'} {place}"
    denied = "one that was denied left nothing behind, and whoever created it was told why"
    raise NotFoundError("; ".join((what, denied, *beside.quotas())))


def _hidden(unread: Mapping[str, UnseenError], namespace: str, name: str) -> Unseen:
    """Say once which objects cannot be read, and why the first one cannot."""
    what = f"{', '.join(one.title() for one in unread)} {namespace}/{Shown(name)}"
    right = f"get {', '.join(_ALL[one].resource for one in unread)} in namespace {namespace}"
    return unseen(what, next(iter(unread.values())), right)
