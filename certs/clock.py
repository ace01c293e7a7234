"""The clock here and that of the API server, which is to accept what is issued here."""

from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

from certs.errors import ClusterError
from certs.issuer import CLOCK_SKEW


def time_of(headers: Mapping[str, str]) -> datetime | None:
    """Read the time of an answer from its headers; None if they do not say it."""
    try:
        told = parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError, OverflowError):
        return None
    return told if told.tzinfo is not None else None


def check_clock(now: datetime, api_servers: datetime | None) -> None:
    """
    See that the API server, which is to accept what is issued, has about the same time.

    Raises:
        ClusterError: If it does not: what a clock that is ahead issues is not valid there yet, and replaces what is.
    """
    if api_servers is not None and abs(now - api_servers) > CLOCK_SKEW:
        raise ClusterError(
            f"it is {now:%Y-%m-%d %H:%M} UTC here and {api_servers:%Y-%m-%d %H:%M} on the API server, so "
            "nothing is written: set the clock that is wrong; the next pass goes on"
        )
