"""The proxy is chosen as kubectl chooses it (golang.org/x/net/http/httpproxy)."""

import pytest

from program.proxy import headers_for, is_overheard, proxy_of, with_scheme

P, OTHER = "http://proxy.example:3128", "http://other.example:3128"
FAR = "https://api.lan:6443"


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, FAR, None),
        ({"HTTPS_PROXY": P}, FAR, P),
        ({"https_proxy": P}, FAR, P),
        ({"HTTPS_PROXY": P, "https_proxy": OTHER}, FAR, P),
        ({"HTTPS_PROXY": P, "https_proxy": ""}, FAR, P),
        ({"HTTPS_PROXY": "", "https_proxy": P}, FAR, P),
        ({"HTTP_PROXY": P}, FAR, None),
        ({"HTTP_PROXY": P}, "http://api.lan", P),
        ({"ALL_PROXY": P, "all_proxy": P}, FAR, None),
        ({"HTTPS_PROXY": P}, "https://localhost:6443", None),
        ({"HTTPS_PROXY": P}, "https://127.0.0.2:6443", None),
        ({"HTTPS_PROXY": P}, "https://[::1]:6443", None),
    ],
)
def test_a_proxy_is_that_of_its_scheme_and_never_for_this_machine(
    environment: dict[str, str], url: str, proxy: str | None
) -> None:
    assert proxy_of(environment, url) == proxy


@pytest.mark.parametrize(
    ("url", "exceptions", "is_direct"),
    [
        (FAR, "lan", True),
        (FAR, ".lan", True),
        (FAR, "*.lan", True),
        (FAR, "*lan", False),
        (FAR, "API.lan", True),
        (FAR, ".api.lan", False),
        (FAR, "*.api.lan", False),
        (FAR, "pi.lan", False),
        (FAR, "elsewhere.example, ,api.lan", True),
        (FAR, "elsewhere.example,*", True),
        (FAR, "api.lan:6443", True),
        (FAR, "api.lan:443", False),
        (FAR, ":6443", False),
        ("https://api.lan", "api.lan:443", True),
        ("http://api.lan", "api.lan:80", True),
        ("https://10.1.2.3:6443", "10.1.2.3", True),
        ("https://10.1.2.3:6443", "10.1.2.3:443", False),
        ("https://10.1.2.3:6443", "10.0.0.0/8", True),
        ("https://10.1.2.3:6443", "10.9.9.9/8", True),
        ("https://10.1.2.3:6443", "192.168.0.0/16,x/y", False),
        ("https://10.1.2.3:6443", "2.3", True),  # as a name
        ("https://[fd00::1]:6443", "fd00::1", True),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", True),
        ("https://[fd00::1]:6443", "[fd00::1]:443", False),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        (FAR, "10.0.0.0/8", False),
    ],
)
def test_no_proxy_means_what_it_means_to_go(url: str, exceptions: str, *, is_direct: bool) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        found = proxy_of({"HTTPS_PROXY": P, "HTTP_PROXY": P, name: exceptions}, url)
        assert found == (None if is_direct else P)


@pytest.mark.parametrize(
    ("proxy", "shown"),
    [
        (P, None),
        ("http://us:p%40ss@proxy.example", {"Proxy-Authorization": "Basic dXM6cEBzcw=="}),
        ("https://us@proxy.example", {"Proxy-Authorization": "Basic dXM6"}),
        ("http://%C3%BC:%E2%82%AC@proxy.example", {"Proxy-Authorization": "Basic w7w64oKs"}),
        ("socks5h://us:p@proxy.example", None),  # by SOCKS a header would go to the API server
    ],
)
def test_a_proxy_is_shown_the_user_in_its_address(proxy: str, shown: dict[str, str] | None) -> None:
    assert headers_for(proxy) == shown


@pytest.mark.parametrize(
    ("proxy", "written"),
    [("proxy.example:3128", P), (P, P), ("socks5://a:1", "socks5h://a:1"), ("socks5h://a:1", "socks5h://a:1")],
)
def test_a_proxy_is_spoken_to_by_http_if_it_does_not_say(proxy: str, written: str) -> None:
    assert with_scheme(proxy) == written


@pytest.mark.parametrize(
    ("url", "can_be"),
    [(FAR, False), ("http://api.lan", True), ("http://localhost:8001", False), ("http://127.0.0.1:8001", False)],
)
def test_plain_http_is_overheard_beyond_this_machine(url: str, *, can_be: bool) -> None:
    assert is_overheard(url, None) == can_be
    assert is_overheard(url, "http://proxy.lan:3128") == (not url.startswith("https"))
