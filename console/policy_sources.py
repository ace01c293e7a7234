"""Which ConfigMaps the policies of a cluster come from, by what was seen of the webhook's pods."""

from collections.abc import Iterable
from typing import Final

import msgspec

from console.objects import Pod
from console.seen import COMPONENT_LABEL, OUR_PODS, Seen, Unseen
from policies.contract import POLICIES_VOLUME
from policies.policy_volume import SHIPPED, ConfigMapSource, sources_of

_UNKNOWN: Final = "it is not known which ConfigMaps the webhook reads"

Sources = tuple[ConfigMapSource, ...] | Unseen  # in the order of the volume, or why they are not known


def sources_seen(seen: Seen) -> Sources:
    """Return those of a cluster as it was seen."""
    return policy_sources(seen.parts, seen.hidden(OUR_PODS))


def policy_sources(parts: Iterable[Pod], hidden: Unseen | None) -> Sources:
    """
    Return those of the newest webhook pod among *parts*, and as shipped where there is none.

    *hidden* is why the pods of gpu-share cannot be listed; None if they were.
    """
    if hidden is not None:
        return msgspec.structs.replace(hidden, what="the policies", why=f"{_UNKNOWN}: {hidden.why}")
    webhooks = (one for one in parts if one.metadata.labels.get(COMPONENT_LABEL) == "webhook")
    newest = max(webhooks, key=_newness, default=None)
    if newest is None:
        return SHIPPED
    why = f"pod {newest.metadata.name} has no volume {POLICIES_VOLUME} that is made of ConfigMaps alone"
    return sources_of(newest.spec.volumes) or Unseen(what="the policies", why=f"{_UNKNOWN}: {why}")


def _newness(pod: Pod) -> tuple[bool, str]:
    """Order pods: what is to end, or has ended, is older than all else."""
    is_to_run = pod.metadata.deletion_timestamp is None and pod.status.phase not in ("Failed", "Succeeded")
    return is_to_run, pod.metadata.creation_timestamp or ""
