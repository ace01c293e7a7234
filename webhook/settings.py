"""What the webhook is told when it starts, and the limits that it keeps."""

from dataclasses import dataclass
from pathlib import Path

from program.listening import host_and_port

MAX_BODY_BYTES = 8 * 1024 * 1024  # the API server itself takes 3 MiB, and sends an object at most twice
MAX_DRAIN_BYTES = 64 * 1024 * 1024  # read and thrown away, so that the sender of too much sees its 413
MAX_HEAD_BYTES = 16 * 1024  # of a request; the API server's are below 1 KiB
MAX_HELD_BYTES = 16 * 1024 * 1024  # of bodies that one worker has not got in whole yet, and answers nobody takes
MAX_EMPTY_BYTES = 32 * 1024  # of TLS in which nothing is for us; a record has 16 KiB, a handshake takes less
MAX_HELLO_BYTES = 8 * 1024  # of TLS; Go 1.24 sends 1,471 with its post-quantum key, and three such keys are 4 KiB
MAX_HELLO_RECORDS = 64  # of TLS, in which it comes; callers use one, and each takes some microseconds
MAX_CIPHER_BYTES = 512  # of a hello; the 158 suites that OpenSSL 3 knows are 316, and Go sends 38
MAX_LIST_BYTES = 128  # of a list in a hello that OpenSSL keeps, at 50 times the size; usual ones are below 50
MAX_SESSIONS = 1000  # of TLS 1.2 that one worker keeps when their connections have ended, 1 KiB each
RECEIVE_BUFFER_BYTES = 16 * 1024  # of the kernel, for each connection; it takes twice as much, and counts it as ours
WIDE_BUFFER_BYTES = 64 * 1024  # for those that come while few are here: then large pods arrive in fewer round trips
WIDE_CONNECTIONS = 64  # of one worker
SEND_BUFFER_BYTES = 16 * 1024  # likewise; a usual answer has 2 KiB
MAX_WAITING_REQUESTS = 64  # of one connection, before they are answered; the API server sends one at a time

HANDSHAKE_SECONDS = 5
REQUEST_SECONDS = 10  # from the first byte of a request to the last; the API server gives up after 3
UNTAKEN_SECONDS = 10  # in which a caller takes none of what was sent: then the kernel ends the connection
IDLE_SECONDS = 120  # the API server keeps idle connections for 90 s and does not repeat a POST
SHUTDOWN_SECONDS = 8
IDLE_SHUTDOWN_SECONDS = 3  # how long an idle connection can still be used after SIGTERM
ACCEPT_SHUTDOWN_SECONDS = 0.2  # how long connections that had begun by then are still accepted

MAX_CONNECTIONS = 1024  # of one worker; each takes 25 KiB when idle, 96 at most, and its buffers in the kernel
MAX_OPEN_FILES = 4096
HURRY_SECONDS = 1.0  # in one state, after which a connection has to make room for another where there are too many
BACKLOG = 2048  # connections that no worker has accepted yet


class StartError(Exception):
    """The webhook cannot start: one line that names the option, what is wrong and what to do."""

    def __init__(self, message: str, *, exit_code: int = 2) -> None:
        self.exit_code = exit_code
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of `gpu-share webhook`."""

    policies: Path
    cert: Path
    key: Path
    bind: str = "[::]:8443"
    workers: int = 1
    metrics_bind: tuple[str, int] | None = None  # address of /metrics; None serves none

    @property
    def address(self) -> tuple[str, int]:
        """
        Host and port to listen on.

        Raises:
            StartError: If *bind* is not HOST:PORT.
        """
        address = host_and_port(self.bind)
        if address is None:
            raise StartError(f'--bind must be HOST:PORT, such as 0.0.0.0:8443 or [::]:8443, got "{self.bind}"')
        return address
