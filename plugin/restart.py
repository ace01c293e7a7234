"""
What of `_cluster.yaml` has changed since this process read it.

A part on a node takes up another number of vGPUs while it runs, and all else when it starts.
"""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from plugin.errors import PluginError
from plugin.health.state import Pending
from policies.cluster import Cluster
from policies.errors import PolicyError
from policies.reading.layers import CLUSTER_FILE
from policies.reading.store import ClusterFile
from policies.reading.troubles import Trouble, TroubleLog
from program.log import WarnOnce

_log = logging.getLogger(__name__)


class RestartNeeded:
    """Compares the `_cluster.yaml` of now with the one this process *runs* with, and logs each change once."""

    def __init__(self, runs: Cluster, *, node_name: str, hands_over: bool = False) -> None:
        """*hands_over*: this process hands GPUs to containers, so how it does counts too."""
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
        if self._hands_over and set(newest.handover) != set(self._runs.handover):
            changes += (f"handover {','.join(self._runs.handover)} -> {','.join(newest.handover)}",)
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
        self._troubles = TroubleLog(_log, effect="the one that was read before stays in force")

    def newest(self) -> Cluster | None:
        """Return what was last good of it; None before anything was."""
        try:
            newest = self._file.newest()
        except PolicyError as error:
            self._troubles.tell(Trouble(one, "_cluster", "") for one in error.problems)
        else:
            if newest is not None:
                self._troubles.tell(())
                self._newest = newest
                self._needed.compare(newest)
        return self._newest


class ClusterChanges:
    """
    The same for a process that reads nothing else of the directory; a look costs one question to the kernel.

    *divided_by* says into how many vGPUs GPUs are divided, and *divide_by* has them divided by another number, and
    raises PluginError where that cannot be now. *restart* is called where only a restart takes up what has changed,
    unless GPUs would not be shared any more, as *lost_by* says with the reason; then *stays_by* says why the number has
    to stay as well.
    """

    def __init__(  # noqa: PLR0913 - what it asks, and what it has done
        self,
        policies: Path,
        needed: RestartNeeded,
        *,
        divided_by: Callable[[], int],
        divide_by: Callable[[int], None],
        restart: Callable[[], None],
        lost_by: Callable[[Cluster], str] = lambda _: "",
        stays_by: Callable[[Cluster], str] = lambda _: "",
    ) -> None:
        self._file = _FollowedFile(policies, needed)
        self._needed = needed
        self._divided_by = divided_by
        self._divide_by = divide_by
        self._restart = restart
        self._lost_by = lost_by
        self._stays_by = stays_by
        self._warn = WarnOnce(_log)

    def look(self) -> Pending:
        """Take up what can be, and say what cannot."""
        newest = self._file.newest()
        if newest is None:
            return Pending()
        number = newest.vgpus_per_gpu
        if not (changes := self._needed.changes):
            return Pending(not_taken=self._divided(number))
        if why := self._lost_by(newest):
            change, why = ", ".join(changes), f"a start would not share all GPUs: {why}"
            self._warn(f"not taken: {change}", why)
            # Webhooks grant by the new number, whatever becomes of the rest, if they grant what is advertised here.
            of_number = self._stays_by(newest) or self._divided(number)
            return Pending(not_taken="; ".join(filter(None, (of_number, f"{change}: {why}"))))
        self._restart()
        return Pending(needs_restart=changes)

    def _divided(self, wanted: int) -> str:
        if wanted == (now := self._divided_by()):
            return ""
        change = f"vgpusPerGpu {now} -> {wanted}"
        try:
            self._divide_by(wanted)
        except PluginError as error:
            self._warn(f"not taken yet: {change}", str(error))
            return f"{change}: {error}"
        _log.info("what is free is divided anew", extra={"file": CLUSTER_FILE, "changed": change})
        return ""


class StartChanges:
    """
    Whether `_cluster.yaml` says something else by now than what this process has started with.

    For a process that waits for GPUs: it has nothing to lose by a restart.
    """

    def __init__(self, policies: Path, needed: RestartNeeded, *, vgpus_per_gpu: int) -> None:
        self._file = _FollowedFile(policies, needed)
        self._needed = needed
        self._vgpus_per_gpu = vgpus_per_gpu

    def look(self) -> bool:
        """Say whether it does; a file that is broken says nothing."""
        newest = self._file.newest()
        return newest is not None and (bool(self._needed.changes) or newest.vgpus_per_gpu != self._vgpus_per_gpu)


def _changes(runs: Cluster, newest: Cluster) -> Iterator[str]:
    for strategy, name in runs.resource_names.items():
        if newest.resource_names[strategy] != name:
            yield f"resourceNames.{strategy} {name} -> {newest.resource_names[strategy]}"
    if newest.mps.pipe_directory != runs.mps.pipe_directory:
        yield f"mps.pipeDirectory {runs.mps.pipe_directory} -> {newest.mps.pipe_directory}"
