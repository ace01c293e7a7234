"""
What Pod Security enforces in the namespaces of the pods: admission goes by it, and no pod says it.

It is known where the user says it, from Namespaces beside the pods, from a cluster, or from the grant of a stored pod.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import msgspec

from policies.carried_grant import carried_grant
from policies.contract import POD_SECURITY_LABEL, RESTRICTED_LEVELS
from policies.errors import quoted
from policies.grant import Decision, Denied, Grant
from policies.pod import Pod, slots
from webhook.preview.shapes import Fields, mapping

LabelsOf = Callable[[Collection[str]], Mapping[str, str]]  # of namespaces: the label, empty for one without it

_LEVELS = " or ".join(RESTRICTED_LEVELS)
_NAMED = 3  # namespaces, in one sentence


class PodSecurity(msgspec.Struct, frozen=True):
    """What is known of it."""

    level: str = ""  # of all namespaces, as the user says
    written: Mapping[str, str] = {}  # the label of each Namespace beside the pods, empty for one without it
    of_cluster: Mapping[str, str] = {}  # the same, as the cluster has it

    def restricts(self, namespace: str) -> bool | None:
        """Whether it forbids hostIPC and hostPath volumes in a namespace; None if that is not known."""
        labels = (self.level, self.written.get(namespace), self.of_cluster.get(namespace))
        said = next(filter(None, labels), None)
        if said is not None:
            return said in RESTRICTED_LEVELS
        return None if labels[1:] == (None, None) else False


def restricted_when_stored(pod: Pod) -> bool | None:
    """Whether it did so when a stored *pod* was granted; None if its grant does not say."""
    grant = carried_grant(pod, slots(pod))
    return {"node": True, "pod": False}.get(grant.attach) if grant is not None else None


def written_labels(documents: Collection[Any]) -> dict[str, str]:
    """Read the label of each Namespace among objects and lists of them, empty where it has none."""
    return {
        mapping(one, "metadata")["name"]: str(mapping(mapping(one, "metadata"), "labels").get(POD_SECURITY_LABEL) or "")
        for one in _objects(documents)
        if (one.get("apiVersion"), one.get("kind")) == ("v1", "Namespace")
        and isinstance(mapping(one, "metadata").get("name"), str)
    }


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
