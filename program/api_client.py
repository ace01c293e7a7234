"""A client of the API server by what a kubeconfig and the environment say, for each application that has one."""

import ssl
from functools import partial
from tempfile import NamedTemporaryFile
from typing import Any, Final

from kubernetes import client
from urllib3 import disable_warnings
from urllib3.exceptions import HTTPError, InsecureRequestWarning
from urllib3.util import create_urllib3_context

from program.kubeconfig import NOT_A_KUBECONFIG
from program.login import CredentialError, Login, SignedIn
from program.private_files import remove
from program.proxy import headers_for, with_scheme
from program.tls import as_kubectl

_FILES: Final = ("ca_certs", "ca_cert_data", "cert_file", "key_file")


class ProxyError(Exception):
    """The address of the proxy is invalid. It may have a password, so the sentence does not show it."""

    def __init__(self) -> None:
        super().__init__(
            "the proxy is invalid: expected an address such as http://proxy.example:3128: correct HTTPS_PROXY, or "
            "proxy-url in the kubeconfig"
        )


def api_client(settings: client.Configuration, login: Login | None = None) -> client.ApiClient:
    """
    Make a client that shows with each request what *login* has; None if the settings have it.

    Raises:
        ProxyError: If the address of the proxy is invalid.
    """
    loaded = _loaded(settings)
    try:
        if settings.proxy:
            settings.proxy = with_scheme(settings.proxy)
            settings.proxy_headers = headers_for(settings.proxy)
        made = client.ApiClient(settings)
    except (HTTPError, *NOT_A_KUBECONFIG):
        raise ProxyError from None
    made.rest_client.pool_manager.connection_pool_kw |= loaded
    if not settings.verify_ssl:  # as whoever wrote insecure-skip-tls-verify wants it; kubectl does not warn either
        disable_warnings(InsecureRequestWarning)
    if login:
        made.rest_client.pool_manager = SignedIn(  # type: ignore[assignment] # all that is asked of it
            made.rest_client.pool_manager, login, partial(_showing, settings)
        )
    return made


def _loaded(settings: client.Configuration) -> dict[str, Any]:
    """Load once what the settings say of TLS; give what a pool of connections is told in place of the files."""
    if not settings.host.lower().startswith("https:"):
        _remove_written(settings)
        return {}
    try:
        tls = _trusting(settings)
        if settings.cert_file:
            # An empty password, or OpenSSL would ask for that of an encrypted key on the terminal.
            tls.load_cert_chain(settings.cert_file, settings.key_file, password="")
        if settings.proxy:
            settings.proxy_ssl_context = _trusting(settings)
    except OSError:  # ssl.SSLError is one; the first request says what is wrong, since urllib3 loads the files then
        return {}
    _remove_written(settings)
    return {"ssl_context": tls, **dict.fromkeys(_FILES)}


def _remove_written(settings: client.Configuration) -> None:
    for one in filter(None, (settings.cert_file, settings.key_file)):
        remove(one)


def _trusting(settings: client.Configuration) -> ssl.SSLContext:
    tls = as_kubectl(create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if settings.verify_ssl else ssl.CERT_NONE))
    if settings.ssl_ca_cert or settings.ca_cert_data:
        tls.load_verify_locations(settings.ssl_ca_cert, cadata=settings.ca_cert_data)
    else:
        tls.load_default_certs()
    return tls


def _showing(settings: client.Configuration, certificate: bytes) -> ssl.SSLContext:
    """
    Show a certificate, which has its key in it, in PEM, in the place of that in the settings.

    Raises:
        CredentialError: If it is none.
    """
    tls = _trusting(settings)
    with NamedTemporaryFile(prefix="gpu-share-") as file:  # OpenSSL reads keys out of files alone
        file.write(certificate)
        file.flush()
        try:
            tls.load_cert_chain(file.name, password="")
        except OSError as error:
            raise CredentialError(f"the certificate of the credential plugin cannot be used: {error}") from None
    return tls
