"""
What `gpu-share mps` publishes for the plugin: the state of each GPU's MPS daemon, in one small file with a heartbeat.

Whether it lives, its lock says (`presence`). Times are those of `state_files.boot_seconds`; ISO texts are for people.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from plugin.mps.place import MOUNT_SOURCES
from plugin.presence import lives
from plugin.shares.strategy import Mps
from plugin.state_files import boot_id, boot_seconds, read_json, write_reserved

StateName = Literal["starting", "ready", "fault", "failed", "stopped"]

STATE_FILE = "mps.json"
PROGRAM = "mps"  # as its lock is named
FRESH_SECONDS = 20.0  # a daemon that nobody has looked at for longer may be anything


class MpsGpu(msgspec.Struct, frozen=True, kw_only=True):
    """How the daemon of one GPU is."""

    state: StateName
    since: str  # ISO, UTC
    why: str = ""  # one sentence; empty when ready
    checked_seconds: float  # when a look at the daemon was last completed, or still went on


def report_of(state: StateName, why: str, *, before: MpsGpu | None = None) -> MpsGpu:
    """Say how a daemon is now, and since when, by the report *before*."""
    if before is not None and before.state == state:
        since = before.since
    else:
        since = datetime.now(UTC).isoformat(timespec="seconds")
    return MpsGpu(state=state, since=since, why=why, checked_seconds=boot_seconds())


class MpsState(msgspec.Struct, frozen=True, kw_only=True):
    """How all daemons of this node are."""

    boot_id: str
    gpus: dict[str, MpsGpu]  # by UUID
    looked: bool = True  # for GPUs; what an earlier `gpu-share mps` said of them is not valid any more
    pipe_directory: str = ""  # in which the daemons serve; empty if nobody says
    mount_sources: str = ""  # where containers get it from; empty for the former


def write_state(state_dir: Path, state: MpsState) -> None:
    """
    Publish *state*.

    Raises:
        OSError: If the directory is not there or cannot be written to; what was published before stays.
    """
    write_reserved(state_dir / STATE_FILE, msgspec.json.encode(state))


def read_state(state_dir: Path) -> MpsState | None:
    """Read what was published last; None if that is nothing, or nothing that this version can read."""
    return read_json(state_dir / STATE_FILE, MpsState)


def forget_state(state_dir: Path) -> None:
    """
    Say that nothing is known of any daemon, in place of what an earlier `gpu-share mps` has said.

    Raises:
        OSError: If it cannot be written.
    """
    write_state(state_dir, MpsState(boot_id=boot_id(), gpus={}, looked=False))


def fault(
    state: MpsState | None, gpu_uuid: str, *, now_seconds: float, boot_id: str, pipe_directory: str = ""
) -> str | None:
    """
    Say why no container may start on a GPU that is shared by MPS; None if its daemon was good a moment ago.

    Containers are told *pipe_directory*; where it is empty, nobody asks whether the daemon serves there.
    """
    if state is None or state.boot_id != boot_id:
        return _NOBODY
    if not state.looked:
        return "gpu-share mps has started, and found no GPU yet: see its log if that lasts"
    gpu = state.gpus.get(gpu_uuid)
    if gpu is None:
        return (
            "gpu-share mps runs no daemon for this GPU: it looks for new ones twice a minute; "
            "does it have the same policies and --strategy as the plugin?"
        )
    if gpu.state == "stopped":
        return "gpu-share mps has ended, and the MPS daemon with it"
    if not _is_fresh(gpu, now_seconds):
        return f"gpu-share mps has not checked the MPS daemon for more than {FRESH_SECONDS:.0f} s: see its log"
    if gpu.state != "ready":
        return f"MPS daemon {gpu.state}: {gpu.why}"
    if "" in (state.pipe_directory, pipe_directory) or Path(state.pipe_directory) == Path(pipe_directory):
        return None
    return (
        f"gpu-share mps serves in {state.pipe_directory}, and gpu-share plugin tells containers {pipe_directory}: "
        "replace the pod of the one that runs by an earlier _cluster.yaml"
    )


def _is_fresh(gpu: MpsGpu, now_seconds: float) -> bool:
    return 0 <= now_seconds - gpu.checked_seconds <= FRESH_SECONDS


MpsFaults = Callable[[Collection[str]], Mapping[str, str]]  # UUIDs: why, by UUID

_NOBODY = "no MPS daemon is supervised on this node: is gpu-share mps running?"
_ENDED = "gpu-share mps no longer runs, and the MPS daemons with it: see the log of its last run"


class PublishedMpsFaults:
    """Reads the supervisor's file in *state_dir* whenever it is another."""

    def __init__(
        self, state_dir: Path, *, boot_id: str, pipe_directory: str = "", clock: Callable[[], float] = boot_seconds
    ) -> None:
        """Take *pipe_directory* for the one that containers are told."""
        self._state_dir = state_dir
        self._pipe_directory = pipe_directory
        self._boot_id = boot_id
        self._clock = clock
        self._read: tuple[int, ...] | None = None  # which file the state is from
        self._state: MpsState | None = None
        self._serving = Mps(pipe_directory, mount_sources=str(state_dir / MOUNT_SOURCES))

    def __call__(self, gpu_uuids: Collection[str]) -> dict[str, str]:
        """Say why, by UUID, for each of those GPUs on which no container may start."""
        # First: a supervisor that starts makes what is published invalid before it is seen to live.
        if not (alive := lives(self._state_dir, PROGRAM)):
            return dict.fromkeys(gpu_uuids, _NOBODY if alive is None else _ENDED)
        file = self._file()
        if file != self._read:
            self._read, self._state = file, read_state(self._state_dir) if file else None
        now_seconds = self._clock()  # once it is read: what it says must not seem to be of the future
        found = {uuid: self._fault(uuid, now_seconds) for uuid in gpu_uuids}
        return {uuid: why for uuid, why in found.items() if why is not None}

    def serving(self) -> Mps:
        """Say where `gpu-share mps` served when it was last asked; where it is going to, if it has not said so."""
        state = self._state
        if state is not None and state.boot_id == self._boot_id and state.pipe_directory:
            self._serving = Mps(state.pipe_directory, mount_sources=state.mount_sources)
        return self._serving

    def daemons(self) -> frozenset[str]:
        """
        Name the GPUs, by UUID, that have an MPS daemon, good or not, as far as `gpu-share mps` has ever said.

        Daemons end with it, which takes them a moment: where it was killed, nothing has said so.
        """
        has_ended = lives(self._state_dir, PROGRAM) is False
        state = read_state(self._state_dir)
        if state is None or state.boot_id != self._boot_id:
            return frozenset()
        now_seconds = self._clock()
        there = {uuid: one for uuid, one in state.gpus.items() if one.state != "stopped"}
        return frozenset(uuid for uuid, one in there.items() if not has_ended or _is_fresh(one, now_seconds))

    def _fault(self, uuid: str, now_seconds: float) -> str | None:
        return fault(
            self._state,
            uuid,
            now_seconds=now_seconds,
            boot_id=self._boot_id,
            pipe_directory=self._pipe_directory,
        )

    def _file(self) -> tuple[int, ...] | None:
        try:
            status = (self._state_dir / STATE_FILE).lstat()
        except OSError:
            return None
        return (status.st_ino, status.st_mtime_ns, status.st_size)
