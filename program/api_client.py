"""A client of the API server by what a kubeconfig and the environment say, for each application that has one."""

import ssl
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final
from urllib.parse import urlsplit

from kubernetes import client
from kubernetes.client.rest import RESTClientObject
from urllib3 import PoolManager, disable_warnings
from urllib3.exceptions import HTTPError, InsecureRequestWarning
from urllib3.util import create_urllib3_context

from program.answers_in_time import in_time
from program.certificate_files import of_files
from program.kubeconfig import NOT_A_KUBECONFIG
from program.login import CredentialError, Login, SignedIn
from program.private_files import remove
from program.proxy import headers_for, with_scheme
from program.tls import as_kubectl, can_be_asked_for
from program.trust import trusting
from program.trusted_pools import TrustedPools

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
    contexts = _contexts(settings)
    try:
        if settings.proxy:
            settings.proxy = with_scheme(settings.proxy)
            settings.proxy_headers = headers_for(settings.proxy)
            if not can_be_asked_for(urlsplit(settings.proxy).hostname):
                raise ProxyError
        made = client.ApiClient(settings)
    except (HTTPError, *NOT_A_KUBECONFIG):
        raise ProxyError from None
    pools = TrustedPools(_managers(settings, made, contexts))
    made.rest_client.pool_manager = pools  # type: ignore[assignment] # all that is asked of it
    if not settings.verify_ssl:  # as whoever wrote insecure-skip-tls-verify wants it; kubectl does not warn either
        disable_warnings(InsecureRequestWarning)
    if login:
        made.rest_client.pool_manager = SignedIn(  # type: ignore[assignment] # all that is asked of it
            pools, login, partial(_showing, settings), files=_files(settings) if contexts else None
        )
    return made


def _contexts(settings: client.Configuration) -> tuple[ssl.SSLContext, ...]:
    """Load once what the settings say of TLS; none if there is no TLS, or the first request is to say what is wrong."""
    if not settings.host.lower().startswith("https:"):
        _remove_written(settings)
        return ()
    try:
        contexts = _trusting(settings)
        if settings.cert_file:
            for one in contexts:
                # An empty password, or OpenSSL would ask for that of an encrypted key on the terminal.
                one.load_cert_chain(settings.cert_file, settings.key_file, password="")
        if settings.proxy:
            settings.proxy_ssl_context, *_ = _trusting(settings)
    except OSError:  # ssl.SSLError is one; urllib3 loads the files then
        return ()
    _remove_written(settings)
    return contexts


def _managers(
    settings: client.Configuration, made: client.ApiClient, contexts: Sequence[ssl.SSLContext]
) -> list[PoolManager]:
    """Have one for each context, which it is told in place of the files."""
    found = [made.rest_client.pool_manager, *(RESTClientObject(settings).pool_manager for _ in contexts[1:])]
    for one, tls in zip(found, contexts, strict=False):
        one.connection_pool_kw |= {"ssl_context": tls, **dict.fromkeys(_FILES)}
    return [in_time(one) for one in found]


def _files(settings: client.Configuration) -> Login | None:
    """Have the client certificate read again where it is in files of the user's, of which none was written here."""
    pair = settings.cert_file, settings.key_file
    if not all(one and Path(one).is_file() for one in pair):
        return None
    try:
        return Login(partial(of_files, *(Path(str(one)) for one in pair)))
    except CredentialError:  # it could be read just now
        return None


def _remove_written(settings: client.Configuration) -> None:
    for one in filter(None, (settings.cert_file, settings.key_file)):
        remove(one)


def _trusting(settings: client.Configuration) -> tuple[ssl.SSLContext, ...]:
    def make() -> ssl.SSLContext:
        return as_kubectl(create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if settings.verify_ssl else ssl.CERT_NONE))

    if settings.ssl_ca_cert or settings.ca_cert_data:
        return trusting(make, file=settings.ssl_ca_cert, data=settings.ca_cert_data)
    tls = make()
    tls.load_default_certs()
    return (tls,)


def _showing(settings: client.Configuration, certificate: bytes) -> tuple[ssl.SSLContext, ...]:
    """
    Show a certificate, which has its key in it, in PEM, in the place of that in the settings.

    Raises:
        CredentialError: If it is none.
    """
    contexts = _trusting(settings)
    try:
        with NamedTemporaryFile(prefix="gpu-share-") as file:  # OpenSSL reads keys out of files alone
            file.write(certificate)
            file.flush()
            for one in contexts:
                one.load_cert_chain(file.name, password="")
    except OSError as error:
        raise CredentialError(f"the certificate of the user cannot be used: {error}") from None
    return contexts
