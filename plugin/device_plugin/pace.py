"""When a kubelet may be called: again and again where it rejects, and never so often that it loses count."""

from collections.abc import Callable
from time import monotonic

from plugin.sockets import SocketIdentity

_FIRST_RETRY_SECONDS = 0.5
_LONGEST_RETRY_SECONDS = 5.0
_BETWEEN_REGISTRATIONS_SECONDS = 0.3  # should something end every stream as soon as it starts
# When a stream ends, the kubelet disconnects whoever is registered then (it looks us up by name), so
# it must have seen the end of the old stream before it hears of the new one.
_SETTLE_SECONDS = 0.2


class Pace:
    """When to call the kubelet: at once where it is new, ever slower where it rejects."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._kubelet: SocketIdentity | None = None
        self._not_before_seconds = 0.0
        self._retry_seconds = _FIRST_RETRY_SECONDS

    def allows(self, kubelet: SocketIdentity) -> bool:
        """Whether *kubelet* may be called now."""
        return kubelet != self._kubelet or self._clock() >= self._not_before_seconds

    def rejected_by(self, kubelet: SocketIdentity) -> None:
        """Leave *kubelet* alone for a while, for longer each time."""
        if kubelet != self._kubelet:
            self._retry_seconds = _FIRST_RETRY_SECONDS
        self._leave_alone(kubelet, seconds=self._retry_seconds)
        self._retry_seconds = min(2 * self._retry_seconds, _LONGEST_RETRY_SECONDS)

    def registered_with(self, kubelet: SocketIdentity) -> None:
        """Remember that *kubelet* knows us."""
        self._leave_alone(kubelet, seconds=_BETWEEN_REGISTRATIONS_SECONDS)
        self._retry_seconds = _FIRST_RETRY_SECONDS

    def ended_stream(self) -> None:
        """Give the kubelet time to see that we ended its stream."""
        self._not_before_seconds = max(self._not_before_seconds, self._clock() + _SETTLE_SECONDS)

    def _leave_alone(self, kubelet: SocketIdentity, *, seconds: float) -> None:
        self._kubelet = kubelet
        self._not_before_seconds = self._clock() + seconds
