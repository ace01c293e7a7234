"""A client of the API server by what a kubeconfig and the environment say, for each application that has one."""

from typing import Final

import yaml
from kubernetes import client, config
from urllib3.exceptions import HTTPError

NOT_A_KUBECONFIG: Final = (ValueError, TypeError, KeyError, AttributeError)  # of the client, for YAML of another kind
INVALID_KUBECONFIG: Final = (config.ConfigException, OSError, yaml.YAMLError, *NOT_A_KUBECONFIG)


class ProxyError(Exception):
    """The address of the proxy is invalid. It may have a password, so the sentence does not show it."""

    def __init__(self) -> None:
        super().__init__(
            "the proxy is invalid: expected an address such as http://proxy.example:3128: correct HTTPS_PROXY, or "
            "proxy-url in the kubeconfig"
        )


def api_client(settings: client.Configuration) -> client.ApiClient:
    """
    Make a client; a proxy without a scheme is one by http, as it is for curl.

    Raises:
        ProxyError: If the address of the proxy is invalid.
    """
    try:
        if settings.proxy and "://" not in settings.proxy:
            settings.proxy = f"http://{settings.proxy}"
        return client.ApiClient(settings)
    except (HTTPError, *NOT_A_KUBECONFIG):
        raise ProxyError from None
