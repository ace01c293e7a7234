"""Times and texts of others, as the commands on a node show them."""

from datetime import UTC, datetime

from program.duration import duration

_LONGEST_TEXT = 500


def since(text: str, now: datetime) -> str:
    """Show since when something is so, and for how long."""
    return f"since {moment_text(text, now, 'for {}')}"


def moment_text(text: str, now: datetime, passed: str) -> str:
    """Show a time of the files, and in *passed* how long ago that is."""
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return safe(text) or "an unknown time"
    shown = f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    seconds = (now - moment).total_seconds()
    if seconds < 0:  # somebody has set the clock back
        return shown
    return f"{shown}, {passed.format(duration(seconds))}"


def safe(text: str) -> str:
    """Keep what a file holds from writing on the terminal."""
    shown = text if text.isascii() and text.isprintable() else ascii(text)[1:-1]
    return shown if len(shown) <= _LONGEST_TEXT else f"{shown[:_LONGEST_TEXT]}..."
