"""The MPS control daemon of one GPU: whatever process holds its pipe directory, from this run or an earlier one."""

import logging
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Event

from plugin.errors import AnswerError, ControlError, MpsError, NotAskedError
from plugin.mps.answers import ServerState, server_pids, server_state
from plugin.mps.control import QUIT, SOCKET, Control
from plugin.mps.held_sockets import HeldSockets
from plugin.mps.logs import CONTROL_LOG, trim
from plugin.mps.pipe_directories import clear, prepare
from plugin.mps.place import Place
from plugin.mps.processes import Holder, holder, holders, reap, runs, send, watched
from plugin.mps.seen import Answered, Blocked, Gone, NoAnswer, Seen, Unreachable, Unread
from plugin.mps.timing import Timing
from plugin.mps.unreachable import NOT_ASKED, why_unreachable
from policies.contract import CUDA_VISIBLE_DEVICES, MPS_PIPE_DIRECTORY

_log = logging.getLogger(__name__)

_POLL_SECONDS = 0.02
_END_NOTICED_SECONDS = 0.2  # of the daemon, between two looks
_SCANS = 3  # a process that forks as it becomes a daemon can slip through one


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
        self._sockets = HeldSockets(self._directory, self._logs / "sockets")
        self.hangs = ""  # why it could not be ended
        self.was_moved = False  # its sockets were, at the last look: who did may have told it more
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
            patience_seconds=timing.patience,
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
            raise MpsError(f"the daemon ended as soon as it was started: see {self._logs / CONTROL_LOG}")
        self._sockets.find(self.pids)
        if lost := self._sockets.lost():  # nobody has work by it yet
            why = why_unreachable(self._directory, lost)
            with suppress(MpsError):
                self.stop()
            raise MpsError(why)

    def start_server(self) -> None:
        """
        Have a server of root's where there is none: the compute mode keeps the GPU for it from then on.

        Raises:
            ControlError: If the daemon does not do it.
        """
        self.control.ask("start_server -uid 0", timeout_seconds=self._timing.start)
        self._sockets.take(self.pids)

    def look(self) -> Seen:
        """See how the daemon and its servers are."""
        trim(self._logs)
        with suppress(MpsError):  # a tenant can have closed the directory to its neighbours
            prepare(self._place.pipe_directory, self._gpu_uuid)
        if not self._is_alive():
            return Gone()
        self.was_moved = self._sockets.find(self.pids)
        if lost := self._sockets.lost():
            return self._unreachable(lost)
        self.control.lead_to(None)
        serving = self._serving
        seen = self._asked()
        if not self._is_alive():  # one that dies meanwhile answers with nothing, and that means no server
            return Gone()
        if (lost := self._sockets.lost()) and not isinstance(seen, Blocked):  # meanwhile: another may have answered
            self._serving = serving
            return self._unreachable(lost)
        if isinstance(seen, Answered):
            self._sockets.keep_modes()
        return seen

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
        self.control.give_up()
        self.control.lead_to(None)
        found = self._holders()
        if found:
            _log.info("ending MPS processes", extra={"gpu": self._gpu_uuid, "pids": [one.pid for one in found]})
        has_socket = (self._directory / SOCKET).is_socket() and not self._sockets.lost()
        if has_socket and any(one.role == "daemon" for one in found):
            with suppress(ControlError):
                self.control.ask(QUIT)
            self._gone_within(self._timing.quit if quit_seconds is None else quit_seconds)
        for number in (signal.SIGTERM, signal.SIGKILL):
            for one in (remaining := self._holders()):
                send(one, number, logs=str(self._logs))
            if remaining:
                self._gone_within(self._timing.kill)
        if remaining := self._holders():
            pids = ", ".join(str(one.pid) for one in remaining)
            self.hangs = f"the MPS processes {pids} cannot be killed, they hang in the driver: reset the GPU, or reboot"
            raise MpsError(self.hangs)
        self.hangs = ""
        self._sockets.release()
        if self._directory.is_dir():
            clear(self._place.pipe_directory, self._gpu_uuid)

    def _listens_within(self, seconds: float) -> None:
        """Wait as long as that for the daemon's socket: what one that starts late is told at once would be lost."""
        deadline = time.monotonic() + seconds
        while not (self._directory / SOCKET).exists() and self._is_alive() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)

    def _asked(self) -> Blocked | NoAnswer | Unread | Answered:
        try:
            return Answered(self._servers())
        except NotAskedError as error:
            return Blocked(str(error))
        except AnswerError as error:
            return Unread(self.hangs or str(error), in_use=self._may_serve())
        except ControlError as error:
            return NoAnswer(self.hangs or str(error))

    def _unreachable(self, lost: Sequence[str]) -> Unreachable:
        """Ask it by the sockets that are held: that it is not found elsewhere is no reason to leave it to tenants."""
        why = why_unreachable(self._directory, lost)
        self.was_moved = True
        serving = self._serving
        try:
            self.control.lead_to(self._sockets.led_to())
            servers = self._servers()
        except (ControlError, OSError):
            servers = {}
        if not servers:  # whether the program asks by links at all is not documented: that it names none ends nothing
            self._serving = serving
        in_use = self._may_serve()
        if in_use and not servers:
            why = f"{why}; {NOT_ASKED}"
        return Unreachable(self.hangs or why, in_use=in_use, servers=servers)

    def _may_serve(self) -> bool:
        """Whether it has a server, unless it hangs: what a kill has not ended is not saved by another look."""
        has_server = any(map(runs, self._serving)) or any(one.role == "server" for one in self._holders())
        return has_server and not self.hangs

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
        asks = self.control.waiting  # by another name each would be taken for a daemon
        found = [
            one
            for one in holders(logs=str(self._logs))
            if one.directory == str(self._directory) and one.pid not in asks
        ]
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
