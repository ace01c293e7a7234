"""The webhook's metrics: what all workers have counted together, and what the policies are."""

from collections.abc import Iterator
from typing import Final

from policies.reading.store import PolicyStore
from program.metrics import Metric, Sample
from webhook.counters import Counted

MOST_FILES: Final = 100  # that are named; more are counted

_SOURCE = "all workers of a replica together"
_FILES = "the policy directory of a replica"

REVIEWS: Final = Metric(
    name="gpu_share_reviews_total",
    kind="counter",
    meaning="Reviews by decision (granted, denied, hidden, untouched, invalid, failed), code and policy. "
    "A code with decision untouched is what mode: warn would have denied.",
    source=_SOURCE,
    labels=("decision", "code", "policy"),
)
SECONDS: Final = Metric(
    name="gpu_share_review_duration_seconds",
    kind="histogram",
    meaning="How long reviews took, without the connection.",
    source=_SOURCE,
)
POLICIES: Final = Metric(
    name="gpu_share_policies",
    meaning="Number of policies in force: that of all namespaces, and those of single ones.",
    source=_FILES,
)
BROKEN: Final = Metric(
    name="gpu_share_policy_file_broken",
    meaning=f"1 for each policy file with a problem, of at most {MOST_FILES}; the log says what and where.",
    source=_FILES,
    labels=("file",),
)
BROKEN_FILES: Final = Metric(
    name="gpu_share_policy_files_broken", meaning="Number of policy files with a problem.", source=_FILES
)
CERTIFICATE: Final = Metric(
    name="gpu_share_serving_certificate_expiry_timestamp_seconds",
    meaning="When the certificate expires that is served, in seconds since 1970; of several workers the first.",
    source=_SOURCE,
)
LINES_LOST: Final = Metric(
    name="gpu_share_log_lines_lost_total",
    kind="counter",
    meaning="Lines of the log that could not be written.",
    source=_SOURCE,
)

METRICS: Final = (REVIEWS, SECONDS, POLICIES, BROKEN, BROKEN_FILES, CERTIFICATE, LINES_LOST)


def samples(counted: Counted, store: PolicyStore) -> Iterator[Sample]:
    """Say what was counted, and how the policies are."""
    for labels, count in counted.reviews.items():
        yield Sample(REVIEWS, labels, count)
    yield Sample(SECONDS, (), counted.seconds)
    yield Sample(POLICIES, (), 1 + len(store.current.namespaces))
    files = sorted({trouble.problem.file for trouble in store.troubles})
    for file in files[:MOST_FILES]:
        yield Sample(BROKEN, (file,), 1)
    yield Sample(BROKEN_FILES, (), store.broken_files)
    if counted.certificate_expires is not None:
        yield Sample(CERTIFICATE, (), counted.certificate_expires)
    yield Sample(LINES_LOST, (), counted.lines_lost)
