"""
1,000 GPUs with 5,000 pods: what a page of them costs here and in the browser.

Both are told in time of the processor: half a second where nobody else works on the machine, and up to twice that where
two programs share a core.
"""

import re
import time
from collections.abc import Iterator

import pytest

from tests.console.page.browser import Browser
from tests.console.page.clusters import large
from tests.console.page.visitor import Visitor, console, until, words

_MOST_SECONDS = 1.0  # for both together
_TRIES = 5


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with console(large(), tmp_path_factory.mktemp("large")) as opened:
        opened.enter()
        until(opened, "/", "1000 GPUs")
        yield opened


def test_all_gpus_are_in_view_and_a_hundred_pods(visitor: Visitor) -> None:
    text = visitor.text("/")
    assert text.count('class="bar"') == 1000
    assert "1 to 100 of 5000" in words(text)


@pytest.mark.exhaustive
def test_a_page_of_all_of_it_takes_less_than_a_second_of_the_processor(browser: Browser, visitor: Visitor) -> None:
    browser.open(visitor.address)
    rendered = min(_render_seconds(visitor) for _ in range(_TRIES))
    shown = min(_show_seconds(browser, visitor) for _ in range(_TRIES))
    print(f"{rendered * 1000:.0f} ms here, {shown * 1000:.0f} ms in the browser")  # noqa: T201 - for `pytest -s`
    assert rendered + shown < _MOST_SECONDS


def _render_seconds(visitor: Visitor) -> float:
    assert visitor.app is not None
    client = visitor.app.test_client(use_cookies=False)
    began = time.thread_time()
    assert client.get("/", base_url=visitor.origin, headers={"Cookie": visitor.cookie}).status_code == 200
    return time.thread_time() - began


def _show_seconds(browser: Browser, visitor: Visitor) -> float:
    """Load the page, and give what the browser's main thread took until it was painted."""
    browser.open("about:blank")
    before = browser.thread_seconds()
    browser.open(f"{visitor.origin}/")
    browser.run("return new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    return browser.thread_seconds() - before


def test_what_changes_among_them_comes_alone(visitor: Visitor) -> None:
    prints = re.findall(r'name="known" value="([^"]+)"', visitor.text("/"))
    answer = visitor.ask("/", "?" + "".join(f"&known={one}" for one in prints))
    assert answer.status == 204 or len(answer.data) < 4096
