"""How long to rest between two looks at a cluster."""

from typing import Final

_REST_FACTOR: Final = 4  # so that looking takes a fifth of the time at most, but for
_MOST_REST_SECONDS: Final = 10.0  # after which an API server that was away is tried again


def rest_seconds(took_seconds: float, *, every_seconds: float) -> float:
    """Say how long to rest after a look that took so long: *every_seconds*, or longer where a look takes long."""
    return max(every_seconds, min(_MOST_REST_SECONDS, _REST_FACTOR * took_seconds))
