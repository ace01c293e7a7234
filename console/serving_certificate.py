"""The certificate that the webhook serves, out of its Secret, of which nothing else is kept."""

from base64 import b64decode
from typing import Final

import msgspec

from console.api_server import ApiServer, path_of
from policies.contract import NAMESPACE, SERVING_SECRET

RIGHT: Final = f"get secrets in namespace {NAMESPACE}"


class _Data(msgspec.Struct, frozen=True):
    certificate: str = msgspec.field(name="tls.crt", default="")


class _Secret(msgspec.Struct, frozen=True):
    data: _Data = _Data()


def serving_certificate(api: ApiServer) -> bytes:
    """
    Read the certificate in PEM; empty if the Secret holds none.

    Raises:
        UnseenError: If the Secret cannot be read, or is not there.
    """
    secret = api.one(_Secret, path_of("api", "v1", "namespaces", NAMESPACE, "secrets", SERVING_SECRET))
    try:
        return b64decode(secret.data.certificate)
    except ValueError:
        return b""
