"""The body of a request: read whole within its limits, or rejected with a sentence."""

import contextlib
from typing import Any

from gunicorn.http.errors import ParseException

from webhook.settings import MAX_BODY_BYTES, MAX_DRAIN_BYTES, REQUEST_SECONDS

_PIECE_BYTES = 64 * 1024


class BodyError(Exception):
    """A body that cannot be had: an HTTP status and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status = status
        super().__init__(sentence)


def read_body(environ: dict[str, Any]) -> bytes:
    """
    Read the body of a WSGI request.

    Raises:
        BodyError: 413 if it is, or says that it is, longer than MAX_BODY_BYTES; 408 if it does not
            arrive in time; 400 if it breaks off or its chunks are malformed.
    """
    announced_bytes = int(environ.get("CONTENT_LENGTH") or 0)
    if announced_bytes > MAX_BODY_BYTES:
        raise _too_large()
    try:
        body: bytes = environ["wsgi.input"].read(announced_bytes or MAX_BODY_BYTES + 1)
    except TimeoutError:
        raise BodyError(408, f"The body did not arrive within {REQUEST_SECONDS} seconds.") from None
    except (OSError, ParseException):
        raise BodyError(400, "The body cannot be read to its end.") from None
    if len(body) > MAX_BODY_BYTES:
        raise _too_large()
    if len(body) < announced_bytes:
        raise BodyError(400, "The body is shorter than its Content-Length.")
    return body


def drain(environ: dict[str, Any]) -> None:
    """Throw away what the caller still sends: to close on it would reset the connection, and the answer with it."""
    with contextlib.suppress(OSError, ParseException):
        for _ in range(MAX_DRAIN_BYTES // _PIECE_BYTES):
            if not environ["wsgi.input"].read(_PIECE_BYTES):
                break


def _too_large() -> BodyError:
    return BodyError(413, f"The body is longer than {MAX_BODY_BYTES} bytes.")
