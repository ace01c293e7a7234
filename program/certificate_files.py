"""The client certificate that files have, which something may renew while a view is open."""

import ssl
from pathlib import Path
from time import time
from typing import Final

from program.files import read_file
from program.login import Credential, CredentialError

_SECONDS: Final = 5.0  # until they are read again; kubectl does for each connection
_MOST_BYTES: Final = 1024 * 1024


def of_files(certificate: Path, key: Path) -> Credential:
    """
    Read a certificate and its key.

    Raises:
        CredentialError: If there are none, or only one of them has been renewed yet.
    """
    try:
        content = _content(certificate, key)
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, password="")
        if content != _content(certificate, key):
            raise CredentialError(f"the client certificate is being renewed: {certificate}")
    except OSError as error:  # ssl.SSLError is one
        raise CredentialError(f"the client certificate cannot be used: {certificate}: {error}") from None
    return Credential(certificate=content, due=time() + _SECONDS)


def _content(certificate: Path, key: Path) -> bytes:
    return b"\n".join(read_file(one, most_bytes=_MOST_BYTES) for one in (certificate, key))
