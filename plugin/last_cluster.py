"""The policies for a part of a node that starts again with a `_cluster.yaml` that is broken, or newer than the part."""

import logging
from datetime import UTC, datetime
from pathlib import Path

from plugin.state_files import write_atomically
from policies.errors import PolicyError
from policies.reading.layers import CLUSTER_FILE
from policies.reading.store import PolicyStore
from program.log import WarnOnce

_log = logging.getLogger(__name__)

_DIRECTORY = "last-cluster"
_HINT = "correct it, or replace this pod if its fields are of a newer version"


class KeptPolicies(PolicyStore):
    """
    Keeps the last good `_cluster.yaml` below *lib_dir*, which outlives a restart of the machine.

    By that it starts where the one of now is broken, as it would have gone on; PolicyError comes where none is kept.
    """

    def __init__(self, directory: Path, *, lib_dir: Path) -> None:
        last = lib_dir / _DIRECTORY
        super().__init__(directory, needs=(CLUSTER_FILE,), last=last)
        self._last = last
        self._kept: bytes | None = None
        self._warn = WarnOnce(_log)
        if self.cluster_file is None:
            self._tell_of_kept()
        self._keep()

    def refresh(self) -> bool:
        """Read the directory again if its state has changed; return whether others, or these without troubles, hold."""
        has_changed = super().refresh()
        self._keep()
        return has_changed

    def _tell_of_kept(self) -> None:
        kept = self._last / CLUSTER_FILE
        try:
            when = datetime.fromtimestamp(kept.stat().st_mtime, UTC).isoformat(timespec="seconds")
        except OSError:
            when = "unknown"
        broken = PolicyError(tuple(one.problem for one in self.troubles if one.policy == "_cluster"))
        _log.warning(
            "started by the last good _cluster.yaml: that of now is broken",
            extra={"file": str(kept), "kept": when, "reason": str(broken), "hint": _HINT},
        )

    def _keep(self) -> None:
        content = self.cluster_file
        if content is None or (
            content == self._kept and (self._last / CLUSTER_FILE).exists()
        ):  # somebody can remove it
            return
        try:
            self._last.mkdir(parents=True, exist_ok=True)
            write_atomically(self._last / CLUSTER_FILE, content, to_disk=True)
        except OSError as error:
            self._warn(
                "_cluster.yaml is not kept: a start with a broken one would end, or go by one before", str(error)
            )
        else:
            self._kept = content
