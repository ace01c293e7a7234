"""What a credential plugin prints: an ExecCredential in JSON or, as kubectl takes it as well, in YAML."""

import codecs
from typing import Any, Final

import msgspec
import yaml

from program.structs import decoder

_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"


class Status(msgspec.Struct, frozen=True):
    """What is to be shown."""

    token: str | None = None
    certificate: str | None = msgspec.field(name="clientCertificateData", default=None)
    key: str | None = msgspec.field(name="clientKeyData", default=None)
    expires: str | None = msgspec.field(name="expirationTimestamp", default=None)


class Answer(msgspec.Struct, frozen=True):
    """An ExecCredential."""

    version: str = msgspec.field(name="apiVersion", default="")
    kind: str = ""
    status: Status | None = None


class _Loader(yaml.SafeLoader):
    """Reads a time as a text, as it is in JSON."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as in the class above
        first: [one for one in resolvers if one[0] != _TIMESTAMP]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read_answer(content: bytes) -> Answer:
    """
    Read what was printed; an editor of Windows may have marked its beginning.

    Raises:
        MsgspecError, UnicodeDecodeError: If it is something else; no value is shown.
    """
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        return decoder(Answer).decode(content)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        found = _of_yaml(content)
        if not isinstance(found, dict):
            raise
        return msgspec.convert(found, Answer)


def _of_yaml(content: bytes) -> Any:
    try:
        return yaml.load(content, _Loader)  # noqa: S506 - a safe one
    except (yaml.YAMLError, ValueError, RecursionError):  # of dates, and of what is no text
        return None
