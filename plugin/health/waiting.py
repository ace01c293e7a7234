"""What `gpu-share plugin status` reads before a GPU is shared: that a plugin is there, and what it waits for."""

import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from plugin.health.state import HEARTBEAT_SECONDS, NodeHealth, Waiting, write_node_health
from plugin.state_files import boot_seconds
from program.log import WarnOnce

_log = logging.getLogger(__name__)

_STARTING = "NVML has not answered yet"


class WaitingNode:
    """
    Publishes what is waited for, and keeps what an earlier plugin knew of the GPUs for when they come.

    *before* is None where nothing of it counts any more.
    """

    def __init__(
        self, state_dir: Path, *, boot_id: str, before: NodeHealth | None, clock: Callable[[], float] = boot_seconds
    ) -> None:
        self._state_dir = state_dir
        self._clock = clock
        self._warn = WarnOnce(_log)
        self._written_seconds: float | None = None
        self.is_over = False  # others publish from now on
        self._health = NodeHealth(
            boot_id=boot_id,
            heartbeat_seconds=0,
            pid=os.getpid(),
            driver="",
            gpus=before.gpus if before else (),
            absent=before.absent if before else (),
            reached=before.reached if before else {},
        )

    def tell(self, why: str, *, slices_not_published: str = "") -> None:
        """Say what is waited for, empty while nothing is known; call it again and again."""
        if self.is_over:
            return
        now = self._clock()
        why = why or _STARTING
        waiting = self._health.waiting
        is_known = waiting is not None and waiting.why == why
        is_same = is_known and self._health.slices_not_published == slices_not_published
        if is_same and self._written_seconds is not None and now - self._written_seconds < HEARTBEAT_SECONDS:
            return
        if not is_known:
            waiting = Waiting(why=why, since=datetime.now(UTC).isoformat(timespec="seconds"))
        self._health = msgspec.structs.replace(
            self._health, waiting=waiting, slices_not_published=slices_not_published, heartbeat_seconds=now
        )
        self._written_seconds = now
        self._write()

    def end(self) -> None:
        """Say that nobody waits any more."""
        self._health = msgspec.structs.replace(self._health, ended=True)
        self._write()

    def _write(self) -> None:
        try:
            write_node_health(self._state_dir, self._health)
        except OSError as error:
            self._warn("`gpu-share plugin status` cannot show what is waited for", str(error))
