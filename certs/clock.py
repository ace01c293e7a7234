"""The clock here and that of the API server, which is to accept what is issued here."""

from datetime import datetime

from certs.errors import ClusterError
from certs.issuer import CLOCK_SKEW


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
