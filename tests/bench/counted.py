"""What the workers of a webhook could have counted."""

from typing import ClassVar

from program import metrics
from program.http_server import Answer
from webhook.counters import Pages
from webhook.metrics import samples


class _NoTroubles:
    """A store as far as metrics ask it."""

    troubles = ()
    broken_files = 0

    class current:  # noqa: N801 - the attribute's name
        namespaces: ClassVar[dict[str, object]] = {}


def counted(*, workers: int, policies: int) -> Pages:
    """Make the pages of some workers, each of which has denied a pod by each of some policies."""
    pages = Pages()
    for pid in range(1, workers + 1):
        one = pages.free({*range(1, pid)})
        one.take()
        for number in range(policies):
            one.add(("denied", "ShareAboveMaximum", f"team-{number}"), 0.0001)
        pages.give(one, pid)
    return pages


def scraped(pages: Pages) -> Answer:
    """Answer a scraper by what was counted."""
    return metrics.answer(samples(pages.counted(), _NoTroubles()))  # type: ignore[arg-type] # what is asked of a store
