"""The page of a stand-in for a cluster, and a browser."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.console.page.browser import Browser, chromium, missing
from tests.console.page.visitor import Visitor, console
from tests.console.stand_in import StandIn

Visited = Callable[..., Visitor]


@pytest.fixture
def visited(tmp_path: Path) -> Iterator[Visited]:
    """Serve the page of a stand-in until the test ends, to somebody who has come in."""
    with ExitStack() as stack:

        def visit(known: StandIn, *, context: str = "", namespace: str = "") -> Visitor:
            visitor = stack.enter_context(console(known, tmp_path, context=context, namespace=namespace))
            visitor.enter()
            return visitor

        yield visit


@pytest.fixture(scope="module")
def chromium_of_all() -> Iterator[Browser]:
    """Start a browser once for the tests of a file."""
    if absent := missing():
        pytest.skip(f"no {absent}: apt-get install chromium chromium-driver")
    with chromium() as browser:
        yield browser


@pytest.fixture
def browser(chromium_of_all: Browser, visited: Visited) -> Iterator[Browser]:  # noqa: ARG001 - for the order in which they end
    """Give a browser whose console must stay silent: it leaves the page before what *visited* served ends."""
    chromium_of_all.driver.delete_all_cookies()
    chromium_of_all.prefers("light")
    chromium_of_all.size(1280)
    yield chromium_of_all
    chromium_of_all.open("about:blank")  # so that nothing of this page asks any more
    assert chromium_of_all.complaints() == []
