"""Commands of `gpu-share` as they write to a terminal of a given width."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios


def in_terminal(columns: int, *arguments: str, **variables: str) -> list[str]:
    """Run `gpu-share` with *arguments* on a terminal of this width; the lines that it writes."""
    terminal, screen = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [sys.executable, "-m", "gpu_share", *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")} | variables
    ran = subprocess.Popen(command, stdout=screen, env=environment)
    os.close(screen)
    shown = b""
    while True:
        try:
            read = os.read(terminal, 65536)
        except OSError:  # how Linux says that nobody has the other side open any more
            break
        if not read:
            break
        shown += read
    os.close(terminal)
    assert ran.wait() == 0
    return shown.decode().replace("\r\n", "\n").splitlines()
