"""
What a kubeconfig says, understood as kubectl does.

The Python client alone takes the current context of the last of several files, fails over an empty one, goes by
NO_PROXY past a proxy that the kubeconfig names, by HTTP_PROXY to its own machine, knows no `as`, and shows a whole
entry with its passwords where a field is missing.
"""

import ipaddress
import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import yaml
from kubernetes import client, config

from program.kubeconfig_user import User, sign_in
from program.login import Login, sendable
from program.private_files import of_data_or_file

NOT_A_KUBECONFIG: Final = (ValueError, TypeError, KeyError, AttributeError, msgspec.ValidationError)  # other YAML
INVALID_KUBECONFIG: Final = (config.ConfigException, OSError, *NOT_A_KUBECONFIG)
_FOR_PLUGINS: Final = "client.authentication.k8s.io/exec"  # the extension of a cluster that credential plugins get


class NoContextError(config.ConfigException):
    """The files are not there, are empty, or say of no context that it is current."""


class _Context(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str | None = None
    namespace: str | None = None


class _Extension(msgspec.Struct, frozen=True):
    name: str
    extension: object = None


class _Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    proxy_url: Any = None  # checked where it is used
    disable_compression: bool | None = None
    extensions: tuple[_Extension, ...] | None = None


class _Entry(msgspec.Struct, frozen=True):
    """Of any kind; only what is chosen must be valid."""

    name: str
    context: dict[str, Any] | None = None
    cluster: dict[str, Any] | None = None
    user: dict[str, Any] | None = None


class _File(msgspec.Struct, frozen=True):
    current: str | None = msgspec.field(name="current-context", default=None)
    contexts: tuple[_Entry, ...] | None = None
    clusters: tuple[_Entry, ...] | None = None
    users: tuple[_Entry, ...] | None = None


_Files = Sequence[tuple[Path, _File]]


class _Tokens(dict[str, str]):
    """Tokens of a pod as they are read, at first and again, without the end of a line that a file may have."""

    def __setitem__(self, name: str, token: str) -> None:
        super().__setitem__(name, sendable(token.strip(), "the token"))


@dataclass(frozen=True, slots=True)
class Chosen:
    """The context that was chosen."""

    name: str
    namespace: str = "default"
    login: Login | None = None  # None in a pod, whose token the settings have


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
    Set what the files say of a context, which is the current one if none is named, and have its user sign in.

    Raises:
        NoContextError: If none is current, and none was named.
        ConfigException, OSError: If they do not say it, or the user cannot sign in.
        Exception: Of NOT_A_KUBECONFIG, if they do not say it.
    """
    files = tuple(_files(paths))
    name = context or next((one.current for _, one in files if one.current), "")
    if not name:
        raise NoContextError("no context is current, and none was named")
    entry, _ = _first(files, lambda one: one.contexts, f"context {name}", name)
    chosen = msgspec.convert(entry.context or {}, _Context)
    entry, directory = _first(files, lambda one: one.clusters, f"cluster {chosen.cluster}", chosen.cluster)
    cluster = msgspec.convert(entry.cluster or {}, _Cluster)
    if not cluster.server:
        raise config.ConfigException(f"the cluster {chosen.cluster} has no server")
    _set(settings, cluster, directory)
    user = User()
    if chosen.user:
        entry, directory = _first(files, lambda one: one.users, f"user {chosen.user}", chosen.user)
        user = msgspec.convert(entry.user or {}, User)
    login = sign_in(settings, user, directory=directory, cluster=_told(cluster, settings))
    return Chosen(name, chosen.namespace or "default", login)


def _files(paths: str) -> Iterator[tuple[Path, _File]]:
    """Read those that are there and not empty; with each the directory by which it names other files."""
    for path in filter(None, paths.split(os.pathsep)):
        file = Path(path).expanduser()
        if not file.exists():
            continue
        try:
            content = yaml.safe_load(file.read_text())
        except yaml.YAMLError as error:  # which shows the line
            mark = getattr(error, "problem_mark", None)
            where = f", line {mark.line + 1}" if mark else ""
            raise config.ConfigException(f"{file} is not valid YAML{where}") from None
        if content is not None:
            yield file.absolute().parent, msgspec.convert(content, _File)


def _first(
    files: _Files, entries: Callable[[_File], Sequence[_Entry] | None], what: str, name: str
) -> tuple[_Entry, Path]:
    for directory, file in files:
        for one in entries(file) or ():
            if one.name == name:
                return one, directory
    raise config.ConfigException(f"there is no {what}")


def _set(settings: client.Configuration, cluster: _Cluster, directory: Path) -> None:
    settings.host = cluster.server.rstrip("/")
    if cluster.certificate_authority_data:
        settings.ca_cert_data = b64decode(cluster.certificate_authority_data).decode(
            "ascii", "ignore"
        )  # a comment may have more
    else:
        settings.ssl_ca_cert = of_data_or_file(None, cluster.certificate_authority, directory=directory)
    settings.verify_ssl = not cluster.insecure_skip_tls_verify
    settings.tls_server_name = cluster.tls_server_name
    if cluster.proxy_url:
        settings.proxy, settings.no_proxy = cluster.proxy_url, None
    elif _is_local(settings.host):
        settings.proxy = None


def _told(cluster: _Cluster, settings: client.Configuration) -> dict[str, Any]:
    """Say of a cluster what credential plugins may ask for."""
    authority = cluster.certificate_authority_data
    if settings.ssl_ca_cert:
        authority = b64encode(Path(settings.ssl_ca_cert).read_bytes()).decode()
    extension = next((one.extension for one in cluster.extensions or () if one.name == _FOR_PLUGINS), None)
    told = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": authority,
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
        "config": extension,
    }
    return {name: value for name, value in told.items() if value is not None}


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
