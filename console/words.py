"""Times, amounts and texts of others, as the commands show them."""

from datetime import UTC, datetime
from typing import Any, Final, Self

from policies.node_values import printable
from program.duration import duration

ABSENT: Final = "-"  # a figure that cannot be had
KEPT: Final = "a webhook keeps the policy that it had, and one that has started since denies"  # of a broken file
_GIB: Final = 1024**3


class Shown(str):
    """A text of somebody else in one line, without what moves a cursor or turns the direction of writing."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Make *text* harmless, and cut it."""
        return super().__new__(cls, printable(" ".join(text.split())))


def as_shown(kind: type, value: Any) -> Any:
    """Read a `Shown` out of JSON; the hook of a decoder of msgspec."""
    if kind is Shown and isinstance(value, str):
        return Shown(value)
    raise TypeError(f"expected a text, got {type(value).__name__}")


def moment(text: str | None) -> datetime | None:
    """Read a time of Kubernetes or of a node; None if it is none."""
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)


def age(text: str | None, now: datetime) -> str:
    """Say how long ago a time is, in whole days, hours, minutes or seconds."""
    at = moment(text)
    return ABSENT if at is None else duration((now - at).total_seconds())


def gib(amount_bytes: int | None) -> str:
    """Write an amount of memory."""
    return ABSENT if amount_bytes is None else f"{amount_bytes / _GIB:.1f} GiB"


def percent(ratio: float | None) -> str:
    """Write a ratio."""
    return ABSENT if ratio is None else f"{ratio:.0%}"


def several(count: int, one: str) -> str:
    """Count things: `1 node`, `2 nodes`."""
    return f"{count} {one}{'' if count == 1 else 's'}"
