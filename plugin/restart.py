"""
What of `_cluster.yaml` has changed since this process read it.

A plugin takes up another number of vGPUs, and other ways of handing GPUs over, while it runs, and all else when it
starts.
"""

import logging
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Protocol

from plugin.errors import PluginError
from plugin.health.state import Pending
from policies.cluster import Cluster
from policies.contract import Handover
from policies.errors import PolicyError
from policies.reading.layers import CLUSTER_FILE
from policies.reading.store import ClusterFile
from policies.reading.troubles import Trouble, TroubleLog
from program.log import WarnOnce

_log = logging.getLogger(__name__)

_STAYS = "the one that was read before stays in force"


class RestartNeeded:
    """Compares the `_cluster.yaml` of now with the one this process *runs* with, and logs each change once."""

    def __init__(self, runs: Cluster, *, node_name: str, hands_over: bool = False) -> None:
        """*hands_over*: this process hands GPUs to containers, so into how many parts counts too."""
        self._runs = runs
        self._node_name = node_name
        self._hands_over = hands_over
        self.changes: tuple[str, ...] = ()  # such as `nodes`; empty if no restart is needed

    def compare(self, newest: Cluster) -> None:
        """Take the newest `_cluster.yaml`."""
        changes = tuple(_changes(self._runs, newest))
        if self._hands_over and newest.vgpus_per_instance != self._runs.vgpus_per_instance:
            changes += ("vgpusPerInstance",)
        if self._nodes(newest) != self._nodes(self._runs):
            changes += ("nodes",)
        if changes and changes != self.changes:
            _log.warning("restart needed", extra={"file": CLUSTER_FILE, "changed": changes})
        elif self.changes and not changes:
            _log.info("restart no longer needed", extra={"file": CLUSTER_FILE})
        self.changes = changes

    def _nodes(self, cluster: Cluster) -> object:
        """Return what counts of `nodes`: the number of vGPUs and their resources for who hands them out alone."""
        rules = cluster.nodes_of(self._node_name)
        if self._hands_over:
            return rules
        return [(rule.node, rule.model, rule.indexes, rule.strategy, rule.mig, rule.allocation) for rule in rules]


class _FollowedFile:
    """`_cluster.yaml`, of which each new content is compared with what a process runs with; a broken one is told of."""

    def __init__(self, policies: Path, needed: RestartNeeded) -> None:
        self._file = ClusterFile(policies)
        self._needed = needed
        self._newest: Cluster | None = None
        self._troubles = TroubleLog(_log, effect=_STAYS)
        self.broken = ""  # why what was last good stays in force; empty if the newest is

    def newest(self) -> Cluster | None:
        """Return what was last good of it; None before anything was."""
        try:
            newest = self._file.newest()
        except PolicyError as error:
            self._troubles.tell(Trouble(one, "_cluster", "") for one in error.problems)
            self.broken = f"{error}; {_STAYS}"
        else:
            if newest is not None:
                self._troubles.tell(())
                self.broken = ""
                self._newest = newest
                self._needed.compare(newest)
        return self._newest


class Followed(Protocol):
    """What a process does by `_cluster.yaml` while it runs."""

    @property
    def vgpus_per_gpu(self) -> int:
        """Into how many vGPUs GPUs are divided."""

    @property
    def handover(self) -> Collection[Handover]:
        """By which ways GPUs are handed over."""

    def divide_by(self, vgpus_per_gpu: int) -> None:
        """Divide them by another number; raises PluginError where that cannot be now."""

    def hand_over_by(self, ways: Collection[Handover]) -> None:
        """Hand them over by other ways; raises PluginError where that cannot be now."""

    def lost_by(self, newest: Cluster) -> str:
        """Say why GPUs would not be shared any more after a start with this one; empty if all would be."""

    def stays_by(self, newest: Cluster) -> str:
        """Say why the number has to stay what it is beside what is not taken; empty if it need not."""

    def go_on_beside(self, newest: Cluster) -> None:
        """Take up what webhooks go by, now that all of it was taken that can be."""

    def restart(self) -> None:
        """End, to be started again."""


class ClusterChanges:
    """
    The same for a process that reads nothing else of the directory; a look costs one question to the kernel.

    It restarts where only a start takes up what has changed, unless GPUs would not be shared any more.
    """

    def __init__(self, policies: Path, needed: RestartNeeded, followed: Followed) -> None:
        self._file = _FollowedFile(policies, needed)
        self._needed = needed
        self._followed = followed
        self._warn = WarnOnce(_log)

    def look(self) -> Pending:
        """Take up what can be, and say what cannot."""
        newest = self._file.newest()
        if newest is None:
            return Pending(not_taken=self._file.broken)
        not_handed_over = self._handed_over(newest.handover)
        pending = self._pending(newest, not_handed_over)
        self._followed.go_on_beside(newest)
        not_taken = filter(None, (self._file.broken, pending.not_taken, not_handed_over))
        return pending._replace(not_taken="; ".join(not_taken))

    def _pending(self, newest: Cluster, not_handed_over: str) -> Pending:
        number = newest.vgpus_per_gpu
        if not (changes := self._needed.changes):
            return Pending(not_taken=self._divided(number))
        if why := "handover cannot be taken" if not_handed_over else self._followed.lost_by(newest):
            change, why = ", ".join(changes), f"a start would not share all GPUs: {why}"
            self._warn(f"not taken: {change}", why)
            # Webhooks grant by the new number, whatever becomes of the rest, if they grant what is advertised here.
            of_number = self._followed.stays_by(newest) or self._divided(number)
            return Pending(not_taken="; ".join(filter(None, (of_number, f"{change}: {why}"))))
        if not self._file.broken:  # by which a start would end
            self._followed.restart()
        return Pending(needs_restart=changes)

    def _divided(self, wanted: int) -> str:
        if wanted == (now := self._followed.vgpus_per_gpu):
            return ""
        change = f"vgpusPerGpu {now} -> {wanted}"
        try:
            self._followed.divide_by(wanted)
        except PluginError as error:
            self._warn(f"not taken yet: {change}", str(error))
            return f"{change}: {error}"
        _log.info("what is free is divided anew", extra={"file": CLUSTER_FILE, "changed": change})
        return ""

    def _handed_over(self, wanted: Collection[Handover]) -> str:
        if {*wanted} == {*(now := self._followed.handover)}:
            return ""
        change = f"handover {','.join(sorted(now))} -> {','.join(sorted(wanted))}"
        try:
            self._followed.hand_over_by(wanted)
        except PluginError as error:
            self._warn(f"not taken yet: {change}", str(error))
            return f"{change}: {error}"
        _log.info("new containers get their GPU by other ways", extra={"file": CLUSTER_FILE, "changed": change})
        return ""


class StartChanges:
    """
    Whether `_cluster.yaml` says something else by now than what this process has started with.

    For a process that waits for GPUs: it has nothing to lose by a restart.
    """

    def __init__(self, policies: Path, needed: RestartNeeded, runs: Cluster) -> None:
        self._file = _FollowedFile(policies, needed)
        self._needed = needed
        self._runs = _followed(runs)

    def look(self) -> bool:
        """Say whether it does; a file that is broken says nothing."""
        newest = self._file.newest()
        return newest is not None and (bool(self._needed.changes) or _followed(newest) != self._runs)


def _followed(cluster: Cluster) -> object:
    return cluster.vgpus_per_gpu, frozenset(cluster.handover)


def _changes(runs: Cluster, newest: Cluster) -> Iterator[str]:
    for strategy, name in runs.resource_names.items():
        if newest.resource_names[strategy] != name:
            yield f"resourceNames.{strategy} {name} -> {newest.resource_names[strategy]}"
    if newest.mps.pipe_directory != runs.mps.pipe_directory:
        yield f"mps.pipeDirectory {runs.mps.pipe_directory} -> {newest.mps.pipe_directory}"
