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


class ClusterChanges:
    """
    The same for a process that reads nothing else of the directory; a look costs one question to the kernel.

    *divide_by* has GPUs divided by another number of vGPUs, and raises PluginError where that cannot be now; *restart*
    is called where only a restart takes up what has changed.
    """

    def __init__(
        self,
        policies: Path,
        needed: RestartNeeded,
        *,
        vgpus_per_gpu: int,
        divide_by: Callable[[int], None],
        restart: Callable[[], None],
    ) -> None:
        self._file = ClusterFile(policies)
        self._needed = needed
        self._vgpus_per_gpu = self._wanted = vgpus_per_gpu
        self._divide_by = divide_by
        self._restart = restart
        self._troubles = TroubleLog(_log, effect="the one that was read before stays in force")
        self._warn = WarnOnce(_log)

    def look(self) -> Pending:
        """Take up what can be, and say what cannot."""
        try:
            newest = self._file.newest()
        except PolicyError as error:
            self._troubles.tell(Trouble(one, "_cluster", "") for one in error.problems)
        else:
            if newest is not None:
                self._troubles.tell(())
                self._wanted = newest.vgpus_per_gpu
                self._needed.compare(newest)
        if self._needed.changes:
            self._restart()
            return Pending(needs_restart=self._needed.changes)
        return Pending(not_taken=self._divided())

    def _divided(self) -> str:
        if self._wanted == self._vgpus_per_gpu:
            return ""
        change = f"vgpusPerGpu {self._vgpus_per_gpu} -> {self._wanted}"
        try:
            self._divide_by(self._wanted)
        except PluginError as error:
            self._warn(f"not taken yet: {change}", str(error))
            return f"{change}: {error}"
        self._vgpus_per_gpu = self._wanted
        _log.info("what is free is divided anew", extra={"file": CLUSTER_FILE, "changed": change})
        return ""


def _changes(runs: Cluster, newest: Cluster) -> Iterator[str]:
    if newest.vgpus_per_instance != runs.vgpus_per_instance:
        yield "vgpusPerInstance"
    for strategy, name in runs.resource_names.items():
        if newest.resource_names[strategy] != name:
            yield f"resourceNames.{strategy} {name} -> {newest.resource_names[strategy]}"
    if newest.mps.pipe_directory != runs.mps.pipe_directory:
        yield f"mps.pipeDirectory {runs.mps.pipe_directory} -> {newest.mps.pipe_directory}"
