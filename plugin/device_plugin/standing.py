"""Since when the kubelet has not known a resource, and why: a pure rule over what its server sees."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic

# A kubelet that restarts is away for seconds, and so is one that starts after the plugin.
LASTS_SECONDS = 30.0
# Known for less counts as not known: something may end every stream as soon as it starts.
_STEADY_SECONDS = 5.0
_NOT_YET = "the kubelet has not answered yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    why: str
    since_seconds: float  # the kubelet has not known the resource since, but for moments
    known_since_seconds: float | None = None


class Standing:
    """What a kubelet makes of a resource. One thread calls `see`; it can be asked from any."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._seen = _Seen(why=_NOT_YET, since_seconds=clock())

    def see(self, why: str) -> None:
        """Take down *why* the kubelet does not know the resource now; empty if it does."""
        now, seen = self._clock(), self._seen
        if why:
            since = now if self._is_steady(seen) else seen.since_seconds
            self._seen = _Seen(why=why, since_seconds=since)
        elif seen.known_since_seconds is None:
            self._seen = replace(seen, known_since_seconds=now)

    @property
    def lasting(self) -> str:
        """Say why the kubelet has not known the resource for a while; empty if it does, or did a moment ago."""
        seen = self._seen
        has_lasted = self._clock() - seen.since_seconds >= LASTS_SECONDS
        return seen.why if has_lasted and not self._is_steady(seen) else ""

    def _is_steady(self, seen: _Seen) -> bool:
        return seen.known_since_seconds is not None and self._clock() - seen.known_since_seconds >= _STEADY_SECONDS
