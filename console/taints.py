"""Taints by which Kubernetes itself keeps pods off a node: what is wrong with it, and nothing for pods to tolerate."""

import re
from collections.abc import Iterable
from typing import Final

from console.tolerations import KEEPS_OFF, Taint

CORDONED: Final = "unschedulable"
NOT_READY: Final = ("not-ready", "unreachable")
# https://kubernetes.io/docs/reference/labels-annotations-taints/; others have taints of their own with the same prefix.
LACKING: Final = (
    *("memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable", "out-of-service"),
    *("uninitialized", "shutdown"),
)
LEAVING: Final = "removed by an autoscaler"
_LEAVES: Final = r"ToBeDeletedByClusterAutoscaler|karpenter\.sh/(?:disrupted|disruption)"
# The API server has pods tolerate it that ask for CPU or memory.
_SEEN_BY_FEW: Final = "memory-pressure"
UNNAMED: Final = "untolerated taint(s)"  # as newer schedulers say it, and do not name them
_OWN: Final = re.compile(
    rf"node(?:\.cloudprovider)?\.kubernetes\.io/({'|'.join((CORDONED, *NOT_READY, *LACKING))})(?![\w.-])"
)
_SAID: Final = re.compile(rf"untolerated taint \{{(?:{_OWN.pattern}|(?:{_LEAVES})(?![\w./-]))[^}}]*\}}")


def condition(key: str) -> str:
    """Give what a taint of Kubernetes' own says of its node, such as disk-pressure; empty for one of somebody else."""
    if re.fullmatch(_LEAVES, key):
        return LEAVING
    found = _OWN.fullmatch(key)
    return found[1] if found else ""


def conditions(taints: Iterable[Taint]) -> tuple[str, ...]:
    """List what keeps pods off a node by its taints, whatever they ask for."""
    told = (condition(one.key) for one in taints if one.effect in KEEPS_OFF)
    return tuple(dict.fromkeys(one for one in told if one not in ("", _SEEN_BY_FEW)))


def told_apart(said: str) -> str:
    """Write what a scheduler says without the word untolerated, where a taint is of Kubernetes' own."""
    return _SAID.sub(lambda found: node_condition(found[1] or LEAVING), said)


def node_condition(name: str) -> str:
    """Write what keeps pods off a node as remedies have it."""
    return f"node condition {name}"
