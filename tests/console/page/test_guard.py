"""Who gets in, and what the browser is told to allow."""

import re
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.console.page.clusters import lively
from tests.console.page.visitor import Visitor, console

PAGES = ("/", "/explain", "/policies", "/preview", "/changes")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """Open one page for all tests here, none of which changes it."""
    with console(lively(), tmp_path_factory.mktemp("guard")) as visitor:
        visitor.enter()
        yield visitor


@pytest.fixture
def visitor(opened: Visitor) -> Visitor:
    """Give a visitor who has come in, and whose cookie may be changed."""
    return replace(opened)


@pytest.mark.parametrize("path", PAGES)
def test_nobody_gets_in_without_the_secret(visitor: Visitor, path: str) -> None:
    visitor.cookie = ""
    for query in ("", "?token=", "?token=x", "?token=%00%ff"):
        answer = visitor.ask(path, query)
        assert answer.status == 401
        assert b"Open the address that gpu-share console printed" in answer.data
        assert b"resnet" not in answer.data
    assert visitor.post("/preview", {"pod": "x", "token": visitor.token}).status == 401


def test_the_secret_becomes_a_cookie_and_leaves_the_address(visitor: Visitor) -> None:
    answer = visitor.enter()
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    told = answer.headers["Set-Cookie"]
    assert "HttpOnly" in told
    assert "SameSite=Strict" in told
    assert visitor.token not in told


def test_a_cookie_is_not_that_of_a_console_on_another_port(visitor: Visitor) -> None:
    name, _, value = visitor.cookie.partition("=")
    assert name.endswith(visitor.origin.rpartition(":")[2])
    visitor.cookie = f"gpu-share-console-1={value}"
    assert visitor.ask("/").status == 401


@pytest.mark.parametrize(
    "host", ["attacker.example", "127.0.0.1.attacker.example:80", "192.0.2.1:9480", "[::2]", "", "a@b"]
)
def test_another_name_of_this_machine_is_rejected(visitor: Visitor, host: str) -> None:
    answer = visitor.ask("/", Host=host)
    assert answer.status in (400, 403)
    assert b"resnet" not in answer.data


def test_names_of_the_loopback_are_the_same_page(visitor: Visitor) -> None:
    port = visitor.origin.rpartition(":")[2]
    assert visitor.ask("/", Host=f"localhost:{port}").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://attacker.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_requests_of_other_pages_are_rejected(visitor: Visitor, headers: dict[str, str]) -> None:
    assert visitor.ask("/", **headers).status == 403
    assert visitor.post("/preview", {"pod": "kind: Pod"}, **headers).status == 403


def test_a_form_of_nobody_is_rejected(visitor: Visitor) -> None:
    headers = {"Cookie": visitor.cookie}
    sent = visitor.pool.request("POST", f"{visitor.origin}/preview", fields={"pod": "x"}, headers=headers)
    assert sent.status == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "POST"])
def test_pages_are_only_read(visitor: Visitor, method: str) -> None:
    headers = {"Cookie": visitor.cookie, "Origin": visitor.origin}
    assert visitor.pool.request(method, f"{visitor.origin}/", headers=headers).status == 405


@pytest.mark.parametrize("path", [*PAGES, "/static/page.css", "/static/htmx.min.js", "/none", "/static/../app.py"])
def test_every_answer_says_what_the_browser_must_not_do(visitor: Visitor, path: str) -> None:
    headers = visitor.ask(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cache-Control"] in ("no-store", "no-cache")
    assert "Werkzeug" not in headers["Server"]


@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_scripts_or_styles_within_or_addresses_elsewhere(visitor: Visitor, path: str) -> None:
    text = visitor.text(path)
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", text)
    assert not re.findall(r'(?:src|href|action|hx-get)="(?!/|#)', text)


def test_a_form_that_is_too_large_is_one_sentence(visitor: Visitor) -> None:
    answer = visitor.post("/preview", {"pod": "x" * 2_000_000})
    assert answer.status == 413
    assert b"Traceback" not in answer.data


def test_a_request_that_is_none_leaves_no_word_in_the_terminal(
    visitor: Visitor, capfd: pytest.CaptureFixture[str]
) -> None:
    port = int(visitor.origin.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as caller:
        caller.sendall(b"GET http://[::1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert caller.recv(1) == b""
    assert visitor.ask("/").status == 200
    assert capfd.readouterr().err == ""
