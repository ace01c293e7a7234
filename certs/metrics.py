"""The metrics of the certificate controller: what it has seen last, and when."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from certs.rotation import CERTIFICATE, NEWEST_CERTIFICATE, State
from program import metrics
from program.certificates import read_certificates
from program.http_server import Answer
from program.metrics import Metric, Sample

EXPIRY: Final = Metric(
    name="gpu_share_certificate_expiry_timestamp_seconds",
    meaning="When the serving certificate (serving) and the newest CA (ca) expire, in seconds since 1970.",
    source="the Secrets",
    labels=("certificate",),
)
LAST_PASS: Final = Metric(
    name="gpu_share_certificates_last_pass_timestamp_seconds",
    meaning="When the last pass ended in which nothing failed, in seconds since 1970.",
    source="`gpu-share certs ensure`",
)

METRICS: Final = (EXPIRY, LAST_PASS)


class LastPass:
    """What the last good pass has seen; for any thread."""

    def __init__(self) -> None:
        self._samples: tuple[Sample, ...] = ()

    def note(self, state: State, now: datetime) -> None:
        """Keep what a pass has left behind."""
        self._samples = (*_expiries(state), Sample(LAST_PASS, (), now.timestamp()))

    def answer(self) -> Answer:
        """Write it for a scraper; nothing before the first pass has ended."""
        return metrics.answer(self._samples)


def _expiries(state: State) -> Iterator[Sample]:
    for label, data in (("serving", state.serving.get(CERTIFICATE)), ("ca", state.ca.get(NEWEST_CERTIFICATE))):
        for certificate in read_certificates(data or b"")[:1]:
            yield Sample(EXPIRY, (label,), certificate.not_valid_after_utc.timestamp())
