"""The MPS control daemon of one GPU: whatever process holds its pipe directory, from this run or an earlier one."""

import logging
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from plugin.errors import ControlError, MpsError, NotAskedError
from plugin.mps.answers import ServerState, server_pids, server_state
from plugin.mps.control import SOCKET, Control
from plugin.mps.pipe_directories import clear, prepare
from plugin.mps.processes import Holder, holder, holders, reap, runs, send, watched
from plugin.mps.restart_policy import Answered, Blocked, Gone, NoAnswer, Unreachable
from plugin.mps.unreachable import has_socket, why_unreachable
from policies.contract import CUDA_VISIBLE_DEVICES, MPS_PIPE_DIRECTORY

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """All in seconds."""

    look: float = 3.0  # between two looks at a daemon
    answer: float = 3.0  # for one command
    settle: float = 0.5  # for the server of another user, in which there is none; 0.1 was seen
    start: float = 25.0  # for a daemon, until it listens, or for a server; with its end less than `end`
    quit: float = 10.0  # for a daemon that was told to, until it is gone with its servers
    kill: float = 3.0  # for a process, after each of SIGTERM and SIGKILL
    end: float = 45.0  # for all of them, at the end; a pod is given 60
    limits: float = 60.0  # between two looks at limits that tenants may have changed
    ceilings: float = 3.0  # between two looks at policies and tenants
    gpus: float = 30.0  # between two looks at the GPUs and their compute modes
    silence: float = 0.2  # between two looks whom daemons wait for
    publish: float = 1.0  # between two looks at what is to be published
    heartbeat: float = 5.0  # between two writes, when nothing changes
    use: float = 10.0  # between two measurements of what containers take


TIMING = Timing()


_LOGS = ("control.log", "server.log")
_LARGEST_LOG_BYTES = 16 << 20  # on a tmpfs
_POLL_SECONDS = 0.02
_END_NOTICED_SECONDS = 0.2  # of the daemon, between two looks
_SCANS = 3  # a process that forks as it becomes a daemon can slip through one


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where daemons are, and how they are run."""

    pipe_directory: Path
    log_directory: Path  # not below the former: there tenants could put links in a log's place
    program: str  # nvidia-cuda-mps-control, by name or path
    multi_user: bool


class Daemon:
    """Starts, looks at and stops the daemon of one GPU; for one thread."""

    def __init__(self, gpu_uuid: str, place: Place, timing: Timing) -> None:
        self._gpu_uuid = gpu_uuid
        self._place = place
        self._timing = timing
        self._directory = place.pipe_directory / gpu_uuid
        self._logs = place.log_directory / gpu_uuid
        self._seen: set[int] = set()  # PIDs, until they are dead
        self._serving: tuple[int, ...] = ()  # PIDs, as the daemon last said
        self.pids: tuple[int, ...] = ()  # of the daemon itself, as it was last found; for any thread
        self.control = Control(
            place.program,
            {
                CUDA_VISIBLE_DEVICES: gpu_uuid,
                MPS_PIPE_DIRECTORY: str(self._directory),
                "CUDA_MPS_LOG_DIRECTORY": str(self._logs),
                "CUDA_MPS_PROTOCOL_VERSION": "2",
            },
            timeout_seconds=timing.answer,
        )

    def start(self) -> None:
        """
        Start the daemon, after an end of whatever holds its directory.

        Raises:
            MpsError: If it does not run then; nothing is left of it.
        """
        self.stop()
        prepare(self._place.pipe_directory, self._gpu_uuid)
        try:
            self._logs.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as error:
            raise MpsError(f"{self._logs}: cannot be made: {error.strerror}") from error
        try:
            self.control.start(["-M"] if self._place.multi_user else [], timeout_seconds=self._timing.start)
        except ControlError:
            with suppress(MpsError):  # half a daemon, perhaps
                self.stop()
            raise
        self._listens_within(self._timing.answer)
        if not self._is_alive():
            raise MpsError(f"the daemon ended as soon as it was started: see {self._logs / _LOGS[0]}")

    def start_server(self) -> None:
        """
        Have a server of root's where there is none: the compute mode keeps the GPU for it from then on.

        Raises:
            ControlError: If the daemon does not do it.
        """
        self.control.ask("start_server -uid 0", timeout_seconds=self._timing.start)

    def look(self) -> Gone | NoAnswer | Unreachable | Blocked | Answered:
        """See how the daemon and its servers are."""
        self._trim_logs()
        with suppress(MpsError):  # a tenant can have closed the directory to its neighbours
            prepare(self._place.pipe_directory, self._gpu_uuid)
        if not self._is_alive():
            return Gone()
        try:
            servers = self._servers()
        except NotAskedError as error:
            return Blocked(str(error)) if self._is_alive() else Gone()
        except ControlError as error:
            if not self._is_alive():
                return Gone()
            if has_socket(self._directory):
                return NoAnswer(str(error))
            return Unreachable(why_unreachable(self._directory, str(error)), in_use=self._has_server())
        # A daemon that dies meanwhile answers with nothing, and that means no server.
        return Answered(servers) if self._is_alive() else Gone()

    def pause(self, seconds: float, ending: Event) -> None:
        """Wait that long, or until *ending*, or until the daemon or a server of it ends."""
        known = ((pid, holder(pid, logs=str(self._logs))) for pid in self._seen)
        daemons = [pid for pid, one in known if one and self._is_ours(one)]
        deadline = time.monotonic() + seconds
        with watched([*daemons, *self._serving]) as has_ended:
            while (left_seconds := deadline - time.monotonic()) > 0:
                if ending.wait(min(left_seconds, _END_NOTICED_SECONDS)) or has_ended():
                    return

    def stop(self, *, quit_seconds: float | None = None) -> None:
        """
        End the daemon and its servers, by force if they take longer than *quit_seconds*, and what they leave behind.

        Raises:
            MpsError: If a process survives that, or something cannot be removed.
        """
        found = self._holders()
        if found:
            _log.info("ending MPS processes", extra={"gpu": self._gpu_uuid, "pids": [one.pid for one in found]})
        if any(one.role == "daemon" for one in found) and has_socket(self._directory):
            with suppress(ControlError):
                self.control.ask("quit")
            self._gone_within(self._timing.quit if quit_seconds is None else quit_seconds)
        for number in (signal.SIGTERM, signal.SIGKILL):
            for one in (remaining := self._holders()):
                send(one, number, logs=str(self._logs))
            if remaining:
                self._gone_within(self._timing.kill)
        if remaining := self._holders():
            pids = ", ".join(str(one.pid) for one in remaining)
            raise MpsError(
                f"the MPS processes {pids} cannot be killed, they hang in the driver: reset the GPU, or reboot"
            )
        if self._directory.is_dir():
            clear(self._place.pipe_directory, self._gpu_uuid)

    def _listens_within(self, seconds: float) -> None:
        """Wait as long as that for the daemon's socket: what one that starts late is told at once would be lost."""
        deadline = time.monotonic() + seconds
        while not (self._directory / SOCKET).exists() and self._is_alive() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

    def _has_server(self) -> bool:
        return any(map(runs, self._serving)) or any(one.role == "server" for one in self._holders())

    def _servers(self) -> dict[int, ServerState]:
        states = {}
        listed = self._server_pids()
        if not listed:  # between the servers of two users, perhaps
            time.sleep(self._timing.settle)
            listed = self._server_pids()
        for pid in listed:
            try:
                states[pid] = server_state(self.control.ask(f"get_server_status {pid}"))
            except ControlError:
                if pid in self._server_pids():
                    raise
                # It ended between the two questions.
        self._serving = tuple(states)
        return states

    def _server_pids(self) -> tuple[int, ...]:
        return server_pids(self.control.ask("get_server_list"))

    def _is_alive(self) -> bool:
        # Of thousands of processes, first those that it was.
        known = (holder(pid, logs=str(self._logs)) for pid in list(self._seen))
        if any(one and one.directory == str(self._directory) and self._is_ours(one) for one in known):
            return True
        for _ in range(_SCANS):
            if any(self._is_ours(one) for one in self._holders()):
                return True
            time.sleep(_POLL_SECONDS)
        return False

    def _is_ours(self, holder: Holder) -> bool:
        """Whether it is a daemon of this GPU alone: limits on memory are set by ordinal."""
        return holder.role == "daemon" and holder.gpus == self._gpu_uuid

    def _holders(self) -> Sequence[Holder]:
        found = [one for one in holders(logs=str(self._logs)) if one.directory == str(self._directory)]
        alive = {one.pid for one in found}
        for pid in self._seen - alive:
            reap(pid)  # where there is no other parent left, it is this process
        self._seen = alive
        self.pids = tuple(one.pid for one in found if self._is_ours(one))
        return found

    def _gone_within(self, seconds: float) -> None:
        """Wait until the processes that hold the directory now have ended, as long as that."""
        deadline = time.monotonic() + seconds
        waited_for = self._holders()
        while any(holder(one.pid, logs=str(self._logs)) == one for one in waited_for) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

    def _trim_logs(self) -> None:
        for name in _LOGS:
            with suppress(OSError):
                if (self._logs / name).lstat().st_blocks * 512 > _LARGEST_LOG_BYTES:
                    os.truncate(self._logs / name, 0)
