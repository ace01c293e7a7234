"""Which nodes a pod may be on, as its specification says."""

from typing import Final

import msgspec

from console.tolerations import Toleration

_ONE_NODE: Final = "kubernetes.io/hostname"


class _Expression(msgspec.Struct, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class _Term(msgspec.Struct, frozen=True, rename="camel"):
    match_expressions: tuple[_Expression, ...] = ()
    match_fields: tuple[_Expression, ...] = ()


class _Terms(msgspec.Struct, frozen=True, rename="camel"):
    node_selector_terms: tuple[_Term, ...] = ()


class _NodeAffinity(msgspec.Struct, frozen=True):
    required: _Terms | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class _Affinity(msgspec.Struct, frozen=True, rename="camel"):
    node_affinity: _NodeAffinity | None = None


class Wants(msgspec.Struct, frozen=True, rename="camel"):
    """What chooses the nodes of a pod."""

    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    affinity: _Affinity | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """
        The labels that it needs nodes to have, by selector and required affinity, to compare with those of others.

        Pods of a DaemonSet, and of those who place each pod themselves, differ by the name of a node alone: that a pod
        is for one node is told, and not for which.
        """
        selected = (f"{key}={_told(key, value)}" for key, value in sorted(self.node_selector.items()))
        node_affinity = self.affinity.node_affinity if self.affinity else None
        required = node_affinity.required if node_affinity else None
        return (*selected, *(_written(one) for one in (required.node_selector_terms if required else ())))


class Placed(msgspec.Struct, frozen=True):
    """A pod, as far as it chooses its nodes."""

    spec: Wants = Wants()


def _written(term: _Term) -> str:
    labels = (f"{one.key} {one.operator} {_told(one.key, ','.join(one.values))}" for one in term.match_expressions)
    return "; ".join((*labels, *(one.key for one in term.match_fields)))


def _told(key: str, value: str) -> str:
    return "" if key == _ONE_NODE else value
