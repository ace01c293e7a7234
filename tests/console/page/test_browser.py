"""The page in a real browser: live, by keyboard, at every width, in light and dark, and alone with its own origin."""

from itertools import pairwise
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.console.objects import cluster, gpu, pod, state, tell, tenant
from tests.console.page.browser import Browser
from tests.console.page.clusters import lively
from tests.console.page.conftest import Visited
from tests.console.page.visitor import console

PAGES = ("/", "/?node=gpu-a", "/explain?namespace=team-vision&name=sweep-17", "/policies", "/preview", "/changes")
POD = """kind: Pod
metadata: {name: trial, annotations: {gpu-share: "0.2"}}
spec: {containers: [{name: main}]}
"""


def test_it_changes_by_itself_and_leaves_focus_and_what_is_typed(browser: Browser, visited: Visited) -> None:
    known = cluster(state(gpu(tenant("resnet-0", 2))), pods=(pod("resnet-0"),))
    browser.open(visited(known).address)
    assert "0.8 free" in browser.read()
    browser.run("window.sameDocument = true")
    field = browser.find("input[name=pod]")
    field.send_keys("typed")
    known.lists["/api/v1/pods"].append(pod("bert-0", "0.5"))
    tell(known, state(gpu(tenant("resnet-0", 2), tenant("bert-0", 5))))
    browser.until(lambda: "0.3 free" in browser.read() and "bert-0" in browser.read("#pods"))
    assert browser.run("return window.sameDocument")
    assert browser.run("return document.activeElement === arguments[0] && arguments[0].value", field) == "typed"
    known.states.clear()
    browser.until(lambda: "no answer" in browser.read("#troubles") or "error trying" in browser.read("#troubles"))


def test_a_console_that_has_ended_is_told(browser: Browser, tmp_path: Path) -> None:
    with console(lively(), tmp_path) as visitor:
        browser.open(visitor.address)
        assert not browser.find("#lost").is_displayed()
    browser.until(lambda: browser.find("#lost").is_displayed())
    assert "resnet-train-0" in browser.read()
    browser.open("about:blank")
    assert all("CONNECTION_REFUSED" in one or "htmx" in one for one in browser.complaints())


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_width_is_enough(browser: Browser, visited: Visited, path: str, scheme: str) -> None:
    visitor = visited(lively())
    browser.open(visitor.address)
    browser.prefers(scheme)
    for width in (360, 1000, 1001, 1280, 2560):
        browser.size(width)
        browser.open(visitor.origin + path)
        assert browser.run("return document.documentElement.scrollWidth - innerWidth") <= 0, width
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(", "))) < 200) is (scheme == "dark")


def test_everything_is_reached_by_the_keyboard(browser: Browser, visited: Visited) -> None:
    browser.open(visited(lively()).address)
    assert browser.tab() == "Skip to the content"
    assert browser.find(".skip").location["y"] >= 0
    browser.press(Keys.ENTER)
    seen = [browser.tab() for _ in range(6)]
    assert seen[:4] == ["all\nscience\nteam-language\nteam-vision", "all\ngpu-a\ngpu-b\ngpu-c", "pod", "Filter"]
    assert seen[4:] == ["explain", "explain"]
    outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    browser.press(Keys.ENTER)
    browser.until(lambda: "Explain" in browser.read("h1"))
    assert "ReplicaSet" in browser.read("main") or "resnet-5d" in browser.read("main")


def test_a_pod_is_pasted_and_previewed(browser: Browser, visited: Visited) -> None:
    visitor = visited(lively())
    browser.open(visitor.address)
    browser.open(f"{visitor.origin}/preview")
    browser.find("textarea").send_keys(POD)
    browser.find("form.paste button").click()
    browser.until(lambda: "granted" in browser.read("main"))
    assert "Pod default/trial: granted" in browser.read("#result")
    assert browser.find("textarea").get_attribute("value") == POD


def test_it_asks_nobody_but_itself(browser: Browser, visited: Visited) -> None:
    visitor = visited(lively())
    browser.requests()
    browser.open(visitor.address)
    for path in PAGES:
        browser.open(visitor.origin + path)
    asked = browser.requests()
    assert len(asked) > len(PAGES)
    assert {one for one in asked if not one.startswith(f"{visitor.origin}/")} <= {"about:blank"}
    assert all(visitor.token not in one for one in asked[2:])


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_landmarks_headings_and_names(browser: Browser, visited: Visited, path: str) -> None:
    visitor = visited(lively())
    browser.open(visitor.address)
    browser.open(visitor.origin + path)
    assert browser.run("return document.querySelectorAll('main, header, nav[aria-label]').length") >= 3
    assert browser.run("return document.querySelectorAll('h1').length") == 1
    levels = browser.run("return [...document.querySelectorAll('h1,h2,h3')].map(one => Number(one.tagName[1]))")
    assert all(after - before <= 1 for before, after in pairwise(levels))
    nameless = """return [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea')]
        .filter(one => !(one.innerText || one.textContent || one.ariaLabel || (one.labels && one.labels.length)))
        .map(one => one.outerHTML)"""
    assert browser.run(nameless) == []
    ids = browser.run("return [...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len({*ids})
