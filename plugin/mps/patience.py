"""How long a caller may keep a daemon waiting: a rule from when it did to whether it may go on."""

from collections.abc import Hashable
from dataclasses import dataclass

SECONDS = 0.5  # of waiting, by all connections of a caller, beyond what is forgiven meanwhile
FORGIVEN_RATIO = 0.25  # of the time that passes
LOST_SECONDS = 60.0  # for which there is none, once it is used up
ALL_SECONDS = 1.0  # likewise, by all callers together: more than one alone can use up
SCARCE_SECONDS = 0.15  # for each, once all together have used up theirs
SCARCE_FORGIVEN_RATIO = 0.02  # likewise
_ALL = object()  # together, but those who have lost it; no caller's name
_MOST_CALLERS = 256  # before those that are forgiven are forgotten


@dataclass(slots=True)
class _Account:
    used_seconds: float
    at_seconds: float
    lost_until_seconds: float


class Patience:
    """Counts for each caller, by name; times are in seconds of any clock that only goes forward."""

    def __init__(self) -> None:
        self._accounts: dict[Hashable, _Account] = {}

    def spend(self, caller: Hashable, seconds: float, *, now_seconds: float) -> bool:
        """Take note that a caller has kept a daemon waiting that long until now; return whether that used it all up."""
        had_some = not self.is_lost(caller, now_seconds=now_seconds)
        if had_some:
            self._use(_ALL, seconds, ALL_SECONDS, FORGIVEN_RATIO, now_seconds)
        if self.is_lost(_ALL, now_seconds=now_seconds):
            self._use(caller, seconds, SCARCE_SECONDS, SCARCE_FORGIVEN_RATIO, now_seconds)
        else:
            self._use(caller, seconds, SECONDS, FORGIVEN_RATIO, now_seconds)
        return had_some and self.is_lost(caller, now_seconds=now_seconds)

    def _use(
        self, caller: Hashable, seconds: float, most_seconds: float, forgiven_ratio: float, now_seconds: float
    ) -> None:
        account = self._accounts.get(caller)
        if account is None:
            self._forget(now_seconds)
            account = self._accounts[caller] = _Account(0.0, now_seconds, 0.0)
        forgiven = (now_seconds - account.at_seconds) * forgiven_ratio
        account.used_seconds = max(0.0, account.used_seconds - forgiven) + seconds
        account.at_seconds = now_seconds
        if account.used_seconds >= most_seconds:
            account.used_seconds = most_seconds
            account.lost_until_seconds = now_seconds + LOST_SECONDS

    def is_lost(self, caller: Hashable, *, now_seconds: float) -> bool:
        """Whether a caller may not keep anybody waiting at all now."""
        account = self._accounts.get(caller)
        return account is not None and now_seconds < account.lost_until_seconds

    def _forget(self, now_seconds: float) -> None:
        if len(self._accounts) >= _MOST_CALLERS:
            kept = LOST_SECONDS + ALL_SECONDS / FORGIVEN_RATIO
            self._accounts = {name: one for name, one in self._accounts.items() if now_seconds - one.at_seconds < kept}
