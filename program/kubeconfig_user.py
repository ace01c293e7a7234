"""
The user of a context: by what it signs in, and whom it is to be taken for.

Messages have names of files and programs, and no other value of a user. `auth-provider` is left to kubectl: a refresh
token may be used once, and what came in its place would have to be written to the kubeconfig.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import time
from typing import Any, Final
from urllib.parse import quote

import msgspec
from kubernetes import client, config

from program.exec_plugin import Exec, ExecPlugin
from program.files import read_file
from program.login import Credential, CredentialError, Login, bearer, sendable
from program.private_files import of_data_or_file
from program.proxy import basic

_TOKEN_FILE_SECONDS: Final = 60.0  # until it is read again, as client-go has it
_LONGEST_TOKEN: Final = 1024 * 1024
_IN_A_NAME: Final = "!#$&'*+-.^_`|~"  # of a header, besides letters and digits (RFC 9110, 5.6.2)


class User(msgspec.Struct, frozen=True):
    """What a kubeconfig says of a user."""

    token: str | None = None
    token_file: str | None = msgspec.field(name="tokenFile", default=None)
    username: str | None = None
    password: str | None = None
    provider: object = msgspec.field(name="auth-provider", default=None)
    exec: Exec | None = None
    certificate: str | None = msgspec.field(name="client-certificate", default=None)
    certificate_data: str | None = msgspec.field(name="client-certificate-data", default=None)
    key: str | None = msgspec.field(name="client-key", default=None)
    key_data: str | None = msgspec.field(name="client-key-data", default=None)
    name: str | None = msgspec.field(name="as", default=None)
    uid: str | None = msgspec.field(name="as-uid", default=None)
    groups: tuple[str, ...] | None = msgspec.field(name="as-groups", default=None)
    extra: dict[str, tuple[str, ...]] | None = msgspec.field(name="as-user-extra", default=None)


def sign_in(settings: client.Configuration, user: User, *, directory: Path, cluster: dict[str, Any]) -> Login:
    """
    Set the certificate of a user in a kubeconfig in *directory*, and give what else requests show.

    Raises:
        ConfigException: If that cannot be had.
        ValueError: If it is not base64 where it should be.
    """
    headers = tuple((header, sendable(value, "the user in as")) for header, value in _headers(user))
    login = Login(_source(user, directory, cluster), headers=headers)
    settings.cert_file = of_data_or_file(user.certificate_data, user.certificate, directory=directory)
    settings.key_file = of_data_or_file(user.key_data, user.key, directory=directory)
    return login


def _source(user: User, directory: Path, cluster: dict[str, Any]) -> Callable[[], Credential]:
    """Choose as kubectl does: who has a token needs no plugin, and a file comes before what was in it once."""
    if user.token_file:
        return _TokenFile(directory / user.token_file, user.token or "")
    if user.token:
        return partial(Credential, bearer(user.token))
    if user.username:
        return partial(Credential, basic(f"{user.username}:{user.password or ''}"))
    if user.provider is not None:
        raise CredentialError(
            "the user signs in by auth-provider, which gpu-share does not do: use a credential plugin in its place, "
            "such as kubelogin for OpenID Connect (exec in the kubeconfig)"
        )
    return ExecPlugin(user.exec, directory=directory, cluster=cluster) if user.exec else Credential


class _TokenFile:
    """A file of a token; before it can be read for the first time, the token beside it is as good."""

    def __init__(self, path: Path, beside: str) -> None:
        self._path = path
        self._beside = beside

    def __call__(self) -> Credential:
        try:
            token = _read(self._path)
            self._beside = ""
        except CredentialError:
            if not self._beside:
                raise
            token = self._beside
        return Credential(bearer(token), due=time() + _TOKEN_FILE_SECONDS)


def _read(path: Path) -> str:
    try:
        token = read_file(path, most_bytes=_LONGEST_TOKEN).decode(errors="replace")
    except OSError as error:
        raise CredentialError(f"the token cannot be read: {path}: {error.strerror}") from None
    if not token.strip():
        raise CredentialError(f"the token cannot be read: {path}: the file is empty")
    return token


def _headers(user: User) -> Iterator[tuple[str, str]]:
    if not user.name:
        if user.uid or user.groups or user.extra:
            raise config.ConfigException("a user has as-uid, as-groups or as-user-extra, but no as")
        return
    yield "Impersonate-User", user.name
    if user.uid:
        yield "Impersonate-Uid", user.uid
    yield from (("Impersonate-Group", group) for group in user.groups or ())
    for name, values in (user.extra or {}).items():
        yield from ((f"Impersonate-Extra-{quote(name, safe=_IN_A_NAME)}", value) for value in values)
