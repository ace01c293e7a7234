"""A client of the API server by what a kubeconfig and the environment say, for each application that has one."""

from typing import Any

from kubernetes import client
from urllib3 import BaseHTTPResponse, HTTPHeaderDict, PoolManager
from urllib3.exceptions import HTTPError

from program.kubeconfig import NOT_A_KUBECONFIG, Headers


class ProxyError(Exception):
    """The address of the proxy is invalid. It may have a password, so the sentence does not show it."""

    def __init__(self) -> None:
        super().__init__(
            "the proxy is invalid: expected an address such as http://proxy.example:3128: correct HTTPS_PROXY, or "
            "proxy-url in the kubeconfig"
        )


class _Impersonating:
    """Sends some headers with each request. The client knows one of each name, and groups are several."""

    def __init__(self, pools: PoolManager, headers: Headers) -> None:
        self._pools = pools
        self._headers = headers
        self.clear = pools.clear

    def request(self, method: str, url: str, *, headers: dict[str, str], **rest: Any) -> BaseHTTPResponse:
        all_headers = HTTPHeaderDict(headers)
        for name, value in self._headers:
            all_headers.add(name, value)
        return self._pools.request(method, url, headers=all_headers, **rest)


def api_client(settings: client.Configuration, headers: Headers = ()) -> client.ApiClient:
    """
    Make a client that sends *headers* with each request.

    A proxy without a scheme is one by http, as it is for curl, and one by SOCKS looks up names itself, as for kubectl.

    Raises:
        ProxyError: If the address of the proxy is invalid.
    """
    try:
        if settings.proxy and "://" not in settings.proxy:
            settings.proxy = f"http://{settings.proxy}"
        if settings.proxy and settings.proxy.startswith("socks5://"):
            settings.proxy = settings.proxy.replace("socks5", "socks5h", 1)
        made = client.ApiClient(settings)
    except (HTTPError, *NOT_A_KUBECONFIG):
        raise ProxyError from None
    if headers:
        made.rest_client.pool_manager = _Impersonating(  # type: ignore[assignment] # all that is asked of it
            made.rest_client.pool_manager, headers
        )
    return made
