"""What the API server answers to a request, and in one line what else can come of it."""

from collections.abc import Callable, Container
from typing import Any, Final, TypeVar

import msgspec
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from certs.errors import ClusterError, ConflictError

T = TypeVar("T")

_REMEDIES: Final = {
    401: "check the token of the ServiceAccount, or the kubeconfig",
    403: "grant the permission to this ServiceAccount or user",
    404: "create the namespace first",
    422: "if the object is immutable, delete it, and the next pass creates a new one",
}
_LONGEST: Final = 500  # of what others have written


def answer_of(what: str, call: Callable[[], T], *, conflicts: Container[int] = ()) -> T:
    """
    Make a request; *conflicts* are the statuses by which the API server says that the object is another one by now.

    Raises:
        ConflictError: If it says so.
        ClusterError: If it rejects the request, cannot be reached, or answers something else.
    """
    try:
        return call()
    except ApiException as error:
        if error.status in conflicts:
            raise ConflictError(what) from None
        remedy = _REMEDIES.get(error.status, "see the log of the API server")
        raise ClusterError(f"cannot {what}: {_message(error)}: {remedy}") from None
    except HTTPError as error:
        raise ClusterError(
            f"cannot {what}: the API server cannot be reached: {_line(str(error))}: check its address and the network"
        ) from None
    except (config.ConfigException, OSError) as error:  # of the token, or of what gives it
        raise ClusterError(f"cannot {what}: {_line(str(error))}") from None
    # LookupError: no encoding of Python has its name. TypeError: the client goes through a list that may be a number.
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        reason = _line(f"{type(error).__name__} {error}")
        raise ClusterError(
            f"cannot {what}: the answer is not what an API server gives: {reason}: is a proxy in between?"
        ) from None


def metadata_of(answer: Any) -> client.V1ObjectMeta:
    """
    Return the metadata of an object that the API server answers with, after a write as well.

    Raises:
        ValueError: If there is no object: whatever became of the request, no API server has said so.
    """
    metadata = getattr(answer, "metadata", None)
    if not isinstance(metadata, client.V1ObjectMeta) or not metadata.resource_version:
        raise ValueError("expected an object that has metadata.resourceVersion")
    return metadata


def _message(error: ApiException) -> str:
    """Return the API server's message in one line, or the status and reason where there is none."""
    try:
        message = msgspec.json.decode(error.body or "")["message"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, KeyError):
        message = f"{error.status} {error.reason}"
    return _line(str(message))


def _line(text: str) -> str:
    return " ".join(text[: 2 * _LONGEST].split())[:_LONGEST]
