"""The address that a server listens on; of hosts, `::` is all hosts of both families, as far as the system has them."""

import socket
from typing import Final

ALL_HOSTS: Final = "::"
_LAST_PORT: Final = 65535
_ALL_HOSTS_OF_IPV4: Final = "0.0.0.0"  # noqa: S104 - who asks for all of both wants all of one


def family_and_host(host: str) -> tuple[socket.AddressFamily, str]:
    """
    Return the address family of *host*, and the host to listen on: of a system without IPv6, `::` is all of IPv4.

    Raises:
        OSError: If *host* cannot be a name, for which the socket module raises errors of several other types.
    """
    try:
        host.encode("idna")
    except UnicodeError:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None
    if host == ALL_HOSTS and not socket.has_dualstack_ipv6():
        host = _ALL_HOSTS_OF_IPV4
    return socket.AF_INET6 if ":" in host else socket.AF_INET, host


def host_and_port(text: str) -> tuple[str, int] | None:
    """Read HOST:PORT, a host of IPv6 with or without brackets; None if it is something else."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdigit() and len(port) <= len(str(_LAST_PORT)) and int(port) <= _LAST_PORT
    return (host, int(port)) if host and is_port else None


def written(host: object, port: int) -> str:
    """Write an address as HOST:PORT, a host of IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
