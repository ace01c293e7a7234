"""Pods that wait though they were granted vGPUs of a number that is not in force any more."""

from collections.abc import Iterator
from typing import Any

import msgspec

from policies.cluster import Cluster
from policies.contract import GRANT_ANNOTATION
from policies.errors import quoted
from policies.node_values import Count
from program.structs import decoder


class _Container(msgspec.Struct):
    vgpus: Count
    of: Count


class _Grant(msgspec.Struct):
    containers: dict[str, _Container]
    resource: str


def earlier_grants(pod: dict[str, Any], cluster: Cluster) -> Iterator[str]:
    """Yield a sentence for each container of a pod that still waits and was granted vGPUs of an earlier number."""
    grant = _grant(pod)
    phase = pod["status"].get("phase") if isinstance(pod.get("status"), dict) else None
    has_node = isinstance(pod.get("spec"), dict) and pod["spec"].get("nodeName")
    if grant is None or phase not in (None, "Pending") or (phase and has_node):  # on a node it holds what it was given
        return
    now = cluster.parts_named_by(grant.resource)
    for name, one in grant.containers.items():
        if now not in (None, one.of):
            yield (
                f"{quoted(name, 30)} was granted {one.vgpus} of {one.of} vGPUs, and a GPU is divided into {now} now: "
                f"while the pod is Pending, a node would give it {one.vgpus} of {now}: delete it, and it is granted "
                "anew"
            )


def _grant(pod: dict[str, Any]) -> _Grant | None:
    """Read what a pod was granted; None if nothing says so that can be read."""
    metadata = pod.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(GRANT_ANNOTATION) if isinstance(annotations, dict) else None
    try:
        return decoder(_Grant).decode(text) if isinstance(text, str) else None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
