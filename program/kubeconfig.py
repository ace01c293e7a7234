"""
What a kubeconfig says, understood as kubectl does.

The Python client alone takes the current context of the last of several files, fails over an empty one, goes by
NO_PROXY past a proxy that the kubeconfig names, by HTTP_PROXY to its own machine, and knows no `as`.
"""

import ipaddress
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote, urlsplit

import msgspec
import yaml
from kubernetes import client, config

NOT_A_KUBECONFIG: Final = (ValueError, TypeError, KeyError, AttributeError, msgspec.ValidationError)  # other YAML
INVALID_KUBECONFIG: Final = (config.ConfigException, OSError, yaml.YAMLError, *NOT_A_KUBECONFIG)
Headers: TypeAlias = tuple[tuple[str, str], ...]
_IN_A_NAME: Final = "!#$&'*+-.^_`|~"  # of a header, besides letters and digits (RFC 9110, 5.6.2)


class _Context(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str | None = None
    namespace: str | None = None


class _Cluster(msgspec.Struct, frozen=True):
    proxy: object = msgspec.field(name="proxy-url", default=None)


class _User(msgspec.Struct, frozen=True):
    name: str | None = msgspec.field(name="as", default=None)
    uid: str | None = msgspec.field(name="as-uid", default=None)
    groups: tuple[str, ...] | None = msgspec.field(name="as-groups", default=None)
    extra: dict[str, tuple[str, ...]] | None = msgspec.field(name="as-user-extra", default=None)


class _Entry(msgspec.Struct, frozen=True):
    name: str
    context: _Context | None = None
    cluster: _Cluster | None = None
    user: _User | None = None


class _File(msgspec.Struct, frozen=True):
    current: str | None = msgspec.field(name="current-context", default=None)
    contexts: tuple[_Entry, ...] | None = None
    clusters: tuple[_Entry, ...] | None = None
    users: tuple[_Entry, ...] | None = None


class _Tokens(dict[str, str]):
    """Tokens as they are read, at first and again, without the end of a line that a file may have."""

    def __setitem__(self, name: str, token: str) -> None:
        super().__setitem__(name, _sendable(token.strip(), "the token"))


@dataclass(frozen=True, slots=True)
class Chosen:
    """The context that was chosen."""

    name: str
    namespace: str = "default"
    headers: Headers = ()  # of each request: whom it is to be taken for


def paths_of(kubeconfig: Path | None = None) -> str:
    """Say which files are meant, with colons between them: this one, or those that kubectl reads."""
    return str(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")


def settings_from_environment() -> client.Configuration:
    """Make the settings of a client, which has no API server and no token yet."""
    settings = client.Configuration()
    settings.api_key = _Tokens()
    return settings


def load(settings: client.Configuration, paths: str, context: str = "") -> Chosen:
    """
    Set what the files say of a context, which is the current one if none is named.

    Raises:
        ConfigException, OSError, YAMLError: If they do not say it.
        Exception: Of NOT_A_KUBECONFIG, likewise.
    """
    files = dict(_files(paths))
    name = context or next((one.current for one in files.values() if one.current), "")
    if not name:
        raise config.ConfigException("no context is current, and none was named")
    config.load_kube_config(  # type: ignore[no-untyped-call] # published without types
        os.pathsep.join(files), context=name, client_configuration=settings, persist_config=False
    )
    chosen = _first(name, (file.contexts for file in files.values())).context or _Context()
    cluster = _first(chosen.cluster, (file.clusters for file in files.values())).cluster
    user = _first(chosen.user or "", (file.users for file in files.values())).user
    if cluster and cluster.proxy:
        settings.no_proxy = None
    elif _is_local(settings.host):
        settings.proxy = None
    headers = tuple((header, _sendable(value, "the user in as")) for header, value in _headers(user or _User()))
    return Chosen(name, chosen.namespace or "default", headers)


def _files(paths: str) -> Iterator[tuple[str, _File]]:
    """Read those that are there and not empty."""
    for path in filter(None, paths.split(os.pathsep)):
        file = Path(path).expanduser()
        if file.exists() and (content := yaml.safe_load(file.read_text())) is not None:
            yield str(file), msgspec.convert(content, _File)


def _first(name: str, lists: Iterable[tuple[_Entry, ...] | None]) -> _Entry:
    return next((one for entries in lists for one in entries or () if one.name == name), _Entry(name))


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _sendable(value: str, what: str) -> str:
    """Check the value of a header, and do not show it."""
    if not (value.isascii() and value.isprintable()):
        raise config.ConfigException(f"{what} has a character that HTTP does not allow")
    return value


def _headers(user: _User) -> Iterator[tuple[str, str]]:
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
