"""What the kernel keeps of connections that a server has closed."""

from pathlib import Path

_FIN_WAIT_1, _LAST_ACK, _CLOSING = "04", "09", "0B"  # an end that was sent, and is not acknowledged


def orphans(port: int) -> list[str]:
    """Lines of /proc/net/tcp and tcp6, of the connections of *port* that no process has and that wait for a caller."""
    lines = [line for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return [line for line in lines if _is_orphan(line.split(), port)]


def _is_orphan(fields: list[str], port: int) -> bool:
    _, local, _, state, _, _, _, _, _, inode, *_ = fields
    return int(local.rpartition(":")[2], 16) == port and inode == "0" and state in (_FIN_WAIT_1, _LAST_ACK, _CLOSING)
