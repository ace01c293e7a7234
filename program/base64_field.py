"""Fields of a kubeconfig in base64, read as Go reads them."""

from base64 import b64decode

from kubernetes import config


def decoded(text: str, field: str) -> bytes:
    """
    Decode what a *field* has; lines may break it anywhere.

    Raises:
        ConfigException: If it is something else, such as "REDACTED"; it is not shown.
    """
    try:
        # Without validation every foreign character is dropped, and "****" is nothing at all.
        return b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
    except ValueError:
        raise config.ConfigException(f"{field} must be base64") from None
