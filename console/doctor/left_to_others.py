"""What a node leaves to others, as far as it and `nodes` of `_cluster.yaml` tell, for what they have of it."""

from collections.abc import Sequence
from math import inf
from typing import Final

import msgspec

from console.seen import SeenNode
from policies.cluster import Cluster
from policies.node_state import LEFT_TO_OTHERS
from policies.nodes import NodeRule

MOST_INSTANCES: Final = 7  # of one GPU in MIG mode, which has as many slices


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What a node leaves to others; a number that nobody knows is infinite."""

    gpus: float  # that are not in MIG mode
    listed: float  # the same by `nodes` alone, where a GPU may be one that NVML does not see: it can be a VM's
    in_mig_mode: int
    perhaps_in_mig_mode: float
    perhaps_as_gpus: float  # in MIG mode, and called GPUs all the same
    is_told: bool  # by the node
    shares_instances: bool  # or would: those that it leaves are not all that it may have
    sentences: tuple[str, ...]  # of the node, on those in MIG mode

    @property
    def said(self) -> str:
        """Say what it leaves, where that is something that can be counted."""
        parts = [str(self.gpus)] if 0 < self.gpus < inf else []
        parts += [f"{self.in_mig_mode} in MIG mode"] if self.in_mig_mode else []
        return f"nodes of _cluster.yaml leaves {' and '.join(parts)} to others"

    @property
    def of_vms(self) -> tuple[float, float]:
        """Count those that may be VMs', too: at least so many are left, and perhaps so many."""
        surely = self.listed if self.listed < inf else self.gpus if self.gpus < inf else 0
        return surely + self.in_mig_mode, self.listed + self.perhaps_as_gpus

    def names(self, uuid: str) -> bool:
        """Whether it is a GPU in MIG mode that is left."""
        return bool(uuid) and any(f" {uuid} is in MIG mode" in one for one in self.sentences)


class Had(msgspec.Struct, frozen=True, kw_only=True):
    """
    Something that another has of a node.

    Who sees what is left alone has at most *surely* of it, or *perhaps* where it depends on what is not known.
    """

    what: str
    amount: int
    surely: float
    perhaps: float
    why: str = ""  # it is not known

    def doubt(self, node: str) -> str:
        """Say that nobody knows whether it is left."""
        return f"nobody knows whether the {self.amount} {self.what} of {node} are of GPUs that are shared{self.why}"


def left_by(node: SeenNode, cluster: Cluster) -> Left:
    """Say what *node* leaves to others, by what it says and by `nodes` of *cluster*."""
    rules = cluster.nodes_of(node.name)
    number = gpus_listed(rules)
    listed = inf if number is None else number
    seen = node.state.left_to_others if node.state else None  # None from an older plugin, too
    skipped = node.state.skipped if node.state else ()
    sentences = tuple(one for one in skipped if LEFT_TO_OTHERS in one)
    is_told = bool(node.gpus) or seen is not None
    some_shared, some_left = _instances(rules)
    perhaps_in_mig_mode = len(sentences) if is_told or not some_left else inf
    return Left(
        gpus=listed if seen is None else seen,
        listed=listed,
        in_mig_mode=len(sentences),
        perhaps_in_mig_mode=perhaps_in_mig_mode,
        # Most that is called a GPU is not in MIG mode, and so is told of where nothing runs that could say more.
        perhaps_as_gpus=perhaps_in_mig_mode if node.state or node.silent else 0,
        is_told=is_told,
        shares_instances=some_shared or any(gpu.is_instance for gpu in node.gpus),
        sentences=sentences,
    )


def gpus_listed(rules: Sequence[NodeRule]) -> int | None:
    """Count the GPUs of a node that its entries leave to others, at most; None where they do not say how many."""
    left: set[int] = set()
    decided: set[int] = set()  # by an earlier entry, whatever their model
    for rule in rules:
        if rule.strategy == "none":
            if rule.indexes is None:
                return None
            left |= {*rule.indexes} - decided
        if rule.model == "*":
            if rule.indexes is None:
                break
            decided |= {*rule.indexes}
    return len(left)


def _instances(rules: Sequence[NodeRule]) -> tuple[bool, bool]:
    """Say whether entries of a node share the instances of some GPUs, and whether those of some are left."""
    shared: list[bool] = []
    for rule in rules:
        shared.append(rule.mig != "none")
        if rule.model == "*" and rule.indexes is None:
            break
    else:
        shared.append(False)  # of GPUs that no entry selects
    return any(shared), not all(shared)
