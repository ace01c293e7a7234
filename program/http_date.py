"""What time a server says that it is, in the header `Date` of an answer."""

from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime


def time_of(headers: Mapping[str, str]) -> datetime | None:
    """Read the time of an answer from its headers; None if they do not say it."""
    try:
        told = parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError, OverflowError):
        return None
    return told if told.tzinfo is not None else None
