"""The pictures of docs/console.md: GPU_SHARE_PICTURES=docs/pictures writes them there."""

import os
from pathlib import Path

import pytest

from tests.console.page.browser import Browser
from tests.console.page.clusters import lively
from tests.console.page.conftest import Visited

_WIDTH = 1140
_PNG = b"\x89PNG"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("cluster", "/"),
        ("explain", "/explain?namespace=team-vision&name=sweep-17"),
        ("policies", "/policies?namespace=team-language"),
        ("changes", "/changes"),
    ],
)
def test_the_main_views_are_pictured(browser: Browser, visited: Visited, tmp_path: Path, name: str, path: str) -> None:
    visitor = visited(lively())
    browser.size(_WIDTH)
    browser.open(visitor.address)
    browser.open(visitor.origin + path)
    browser.size(_WIDTH, browser.run("return document.querySelector('main').getBoundingClientRect().bottom | 0"))
    picture = Path(os.environ.get("GPU_SHARE_PICTURES", tmp_path)) / f"{name}.png"
    assert browser.driver.save_screenshot(str(picture))
    assert picture.read_bytes()[:4] == _PNG
    assert 20_000 < picture.stat().st_size < 300_000
