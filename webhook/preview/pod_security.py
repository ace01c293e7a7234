"""
What namespaces say of their pods: what Pod Security enforces, by which admission goes, and which paths they list.

It is known where the user says it, from Namespaces beside the pods, from a cluster, or from the grant of a stored pod.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from policies.carried_grant import carried_grant
from policies.contract import HOST_PATHS_ANNOTATION, MODE_LABEL, POD_SECURITY_LABEL, RESTRICTED_LEVELS
from policies.errors import quoted
from policies.grant import Decision, Denied, Grant
from policies.pod import Pod, slots
from webhook.preview.shapes import Fields, mapping


class Said(NamedTuple):
    """What a namespace says."""

    level: str = ""  # that Pod Security enforces
    host_paths: str | None = None  # in its annotation
    mode: str | None = None  # in its label for the API server's own check


SaidBy = Callable[[Collection[str]], Mapping[str, Said]]  # namespaces

_LEVELS = " or ".join(RESTRICTED_LEVELS)
_NAMED = 3  # namespaces, in one sentence


class PodSecurity(msgspec.Struct, frozen=True):
    """What is known of it."""

    level: str = ""  # of all namespaces, as the user says
    written: Mapping[str, Said] = {}  # by each Namespace beside the pods
    of_cluster: Mapping[str, Said] = {}  # by those of the cluster

    def restricts(self, namespace: str) -> bool | None:
        """Whether it forbids hostIPC and hostPath volumes in a namespace; None if that is not known."""
        said = self._said(namespace)
        level = next(filter(None, (self.level, *(one.level for one in said))), None)
        if level is not None:
            return level in RESTRICTED_LEVELS
        return False if said else None

    def host_paths(self, namespace: str) -> str | None:
        """Return the annotation of a namespace with the paths of the node that it lists; None if that is not known."""
        said = self._said(namespace)
        return next((one.host_paths for one in said if one.host_paths is not None), "") if said else None

    def only_warns(self, namespace: str) -> bool | None:
        """Whether the API server's own check only warns in a namespace, by its label; None if that is not known."""
        said = self._said(namespace)
        return next((one.mode for one in said if one.mode is not None), "") == "warn" if said else None

    def _said(self, namespace: str) -> list[Said]:
        """Return what is said of a namespace; what a file leaves out, the cluster keeps when the file is applied."""
        return [one for of in (self.written, self.of_cluster) if (one := of.get(namespace)) is not None]


def restricted_when_stored(pod: Pod) -> bool | None:
    """Whether it did so when a stored *pod* was granted; None if its grant does not say."""
    grant = carried_grant(pod, slots(pod))
    return {"node": True, "pod": False}.get(grant.attach) if grant is not None else None


def said_by_namespaces(documents: Collection[Any]) -> dict[str, Said]:
    """Read what each Namespace says among objects and lists of them."""
    every = (
        mapping(one, "metadata")
        for one in _objects(documents)
        if (one.get("apiVersion"), one.get("kind")) == ("v1", "Namespace")
    )
    return {
        metadata["name"]: Said(
            str(mapping(metadata, "labels").get(POD_SECURITY_LABEL) or ""),
            _text(mapping(metadata, "annotations"), HOST_PATHS_ANNOTATION),
            _text(mapping(metadata, "labels"), MODE_LABEL),
        )
        for metadata in every
        if isinstance(metadata.get("name"), str)
    }


def _text(texts: Fields, key: str) -> str | None:
    return str(texts[key] or "") if key in texts else None


def _objects(documents: Collection[Any]) -> Iterator[Fields]:
    for one in documents:
        if isinstance(one, dict):
            yield one
            items = one.get("items")
            yield from _objects(items if isinstance(items, list) else ())


def said_of_both(decision: Decision, restricted: Decision, namespace: str) -> str:
    """Say in one sentence what else holds where a level is enforced that is not known; empty if nothing does."""
    if _outcome(decision) == _outcome(restricted):
        return ""
    match restricted:
        case Denied(_, denials):
            then = "denied with " + " ".join(f"{one.code}: {one.message}" for one in denials).rstrip(".")
        case Grant(warnings=warnings):
            then = f"granted{''.join(f', with the warning: {one}' for one in warnings)}"
        case _:
            then = f"admitted as it came{''.join(f', with the warning: {one}' for one in restricted.warnings)}"
    return f"{_unknown([namespace])}: if it does, the pod is {then}".rstrip(".")


def said_of_written(pods: Collection[tuple[str, Decision, Decision | None]]) -> str:
    """
    Say for which level pods are written, of which it is not known and which are others by others; empty if none is so.

    Each is a namespace, the decision that is written, and the one where a level is enforced.
    """
    namespaces = [place for place, decision, restricted in pods if restricted and _attaches(decision, restricted)]
    if not namespaces:
        return ""
    return f"{_unknown([*dict.fromkeys(namespaces)])}: pods are written as where it does not"


def _attaches(decision: Decision, restricted: Decision) -> bool:
    carried = [isinstance(one, Grant) and one.attaches_in_pod for one in (decision, restricted)]
    return carried[0] != carried[1] or isinstance(decision, Grant) != isinstance(restricted, Grant)


def _unknown(namespaces: list[str]) -> str:
    names = ", ".join(quoted(one, 63)[1:-1] for one in namespaces[:_NAMED])
    more = f" and {len(namespaces) - _NAMED} more" if len(namespaces) > _NAMED else ""
    return (
        f"whether Pod Security enforces {_LEVELS} in {names}{more} is not known (a Namespace beside the pods or "
        "--pod-security says so)"
    )


def _outcome(decision: Decision) -> tuple[object, ...]:
    """What the owner of a pod sees of a decision."""
    if isinstance(decision, Denied):
        return (Denied, *((one.code, one.message) for one in decision.reasons))
    return (type(decision), *decision.warnings)
