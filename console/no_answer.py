"""What is said where a request has no answer, or another one than was asked for, in one line."""

import re

import msgspec


def message_of(content: bytes) -> str:
    """Find what the API server says in its answer."""
    try:
        said = msgspec.json.decode(content[:65536])["message"]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError, KeyError):
        return ""
    return str(said)[:500]


def short(error: Exception) -> str:
    """Say in one line why there was no answer."""
    reason = getattr(error, "reason", None) or error  # of the last try
    text = " ".join(str(reason).split())
    return re.sub(r"^HTTPS?Connection(Pool)?\([^)]*\): ", "", text)[:300]
