"""A real Chromium without a window, with what it says of a page: its console, and where it sent requests."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from selenium import webdriver
from selenium.common import (
    JavascriptException,
    NoSuchElementException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

PROGRAMS = ("chromium", "chromedriver")  # of Debian's packages chromium and chromium-driver
_OPTIONS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run")
_DEADLINE_SECONDS = 20.0
_WHILE_REPLACED = (JavascriptException, NoSuchElementException, StaleElementReferenceException)


class Browser:
    """One window."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        self.driver.get(address)

    def size(self, width: int, height: int = 900) -> None:
        """Be a screen of this size, in CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefers(self, scheme: str) -> None:
        """Prefer `light` or `dark`."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def run(self, script: str, *values: Any) -> Any:
        return self.driver.execute_script(script, *values)

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def read(self, selector: str = "body") -> str:
        """Read a text, in one step: the page may replace an element between finding and reading it."""
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def tab(self) -> str:
        """Go on to the next element by the keyboard, and read its text."""
        self.press(Keys.TAB)
        focused = self.driver.switch_to.active_element
        return str(self.run("return (arguments[0].innerText || arguments[0].name || '').trim()", focused))

    def until(self, is_so: Callable[[], object]) -> None:
        """Wait for what the page does by itself, which may be replaced by another one meanwhile."""
        try:
            WebDriverWait(self.driver, _DEADLINE_SECONDS, 0.05, _WHILE_REPLACED).until(lambda _: is_so())
        except TimeoutException:
            raise AssertionError(self.read()) from None

    def thread_seconds(self) -> float:
        """Read how long the processor worked for the page's main thread."""
        self.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        metrics = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))

    def complaints(self) -> list[str]:
        """Take what was written on its console, by the page or by the browser itself."""
        return [str(one["message"]) for one in self.driver.get_log("browser")]  # type: ignore[no-untyped-call] # published without types

    def requests(self) -> list[str]:
        """Take the addresses of all requests since the last call."""
        entries = self.driver.get_log("performance")  # type: ignore[no-untyped-call] # likewise
        messages = [json.loads(one["message"])["message"] for one in entries]
        return [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]


def missing() -> str:
    """Name what there is not of a browser; empty if all is there."""
    return ", ".join(name for name in PROGRAMS if shutil.which(name) is None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start it."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which(PROGRAMS[0]) or ""
    for option in _OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which(PROGRAMS[1])))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
