"""
How the API server is reached: by which proxy, what that is shown, and who may read along.

By the rules of Go (golang.org/x/net/http/httpproxy), which are those of kubectl: Python's own go by ALL_PROXY too, and
take `.example.com` in NO_PROXY for `example.com` itself.
"""

from base64 import b64encode
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import unquote, urlsplit

_PORTS: Final = {"http": 80, "https": 443}
_Address = IPv4Address | IPv6Address


def proxy_of(environment: Mapping[str, str], url: str) -> str | None:
    """
    Say which proxy of the environment leads to *url*, None if none does.

    Raises:
        ValueError: If the URL is invalid.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    proxy = _either(environment, f"{parts.scheme}_proxy")
    return None if not proxy or _is_direct(host, port, _either(environment, "no_proxy")) else proxy


def with_scheme(proxy: str) -> str:
    """Write out how a proxy is spoken to: by http if it does not say, and by SOCKS it looks up names itself."""
    scheme, found, rest = proxy.partition("://")
    if not found:
        return f"http://{proxy}"
    return f"socks5h://{rest}" if scheme == "socks5" else proxy


def headers_for(proxy: str) -> dict[str, str] | None:
    """
    Give what is shown to a proxy of which the address has a user; one by SOCKS is shown it otherwise.

    Raises:
        ValueError: If the address is invalid.
    """
    parts = urlsplit(proxy)
    if parts.scheme not in _PORTS or parts.username is None:
        return None
    user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Proxy-Authorization": basic(user)}


def basic(user_and_password: str) -> str:
    """Write `user:password` as the value of a header, in UTF-8 as Go does."""
    return f"Basic {b64encode(user_and_password.encode()).decode()}"


def is_overheard(url: str, proxy: str | None) -> bool:
    """Whether what is sent to *url*, by a *proxy* if there is one, passes, readable, over a network."""
    parts = urlsplit(url)
    return parts.scheme != "https" and (bool(proxy) or not _is_here(parts.hostname or ""))


def _is_here(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _either(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""


def _is_direct(host: str, port: int, exceptions: str) -> bool:
    if _is_here(host):
        return True
    address = _address(host)
    entries = (entry.strip().lower() for entry in exceptions.split(","))
    return any(_matches(entry, host, address, port) for entry in entries if entry)


def _matches(entry: str, host: str, address: _Address | None, port: int) -> bool:
    """Whether an entry of NO_PROXY means a host, which is an address or a name."""
    if entry == "*":
        return True
    if "/" in entry:
        return address is not None and _has(entry, address)
    name, wanted = _split(entry)
    if wanted not in ("", str(port)):
        return False
    if listed := _address(name):
        return listed == address
    name = name[1:] if name.startswith("*.") else name
    return bool(name) and (host.endswith(name) if name.startswith(".") else f".{host}".endswith(f".{name}"))


def _split(entry: str) -> tuple[str, str]:
    """Split host and port; an address of IPv6 has colons itself."""
    if entry.startswith("["):
        host, _, port = entry[1:].partition("]:")
        return host, port
    host, _, port = entry.partition(":") if entry.count(":") == 1 else (entry, "", "")
    return host, port


def _address(host: str) -> _Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _has(network: str, address: _Address) -> bool:
    try:
        return address in ip_network(network, strict=False)
    except ValueError:
        return False
