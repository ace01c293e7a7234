"""What is said where a request has no answer, or another one than was asked for, in one line."""

import re
from typing import Final

import msgspec

_REDIRECTS: Final = range(300, 400)  # of HTTP


def message_of(content: bytes) -> str:
    """Find what the API server says in its answer."""
    try:
        said = msgspec.json.decode(content[:65536])["message"]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError, KeyError):
        return ""
    return str(said)[:500]


def foreign(status: int, reason: str, content: bytes, *, server: str) -> str:
    """Say what came without the words of an API server, and what to do; *server* is empty behind its proxy."""
    line, said = f"HTTP {status} {reason}".rstrip(), content[:200].decode(errors="replace").strip()
    if said and status not in _REDIRECTS:
        return f"{line}: {said}"
    why = "no redirect is followed" if status in _REDIRECTS else "without a reason"
    remedy = f": is {server} the API server? Check the server of the kubeconfig" if server else ""
    return f"{line}, {why}{remedy}"


def short(error: Exception) -> str:
    """Say in one line why there was no answer."""
    reason = getattr(error, "reason", None) or error  # of the last try
    text = " ".join(str(reason).split())
    return re.sub(r"^HTTPS?Connection(Pool)?\([^)]*\): ", "", text)[:300]
