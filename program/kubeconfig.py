"""
What a kubeconfig says, understood as kubectl does.

The Python client alone takes the current context of the last of several files, fails over an empty one, takes a CA that
is not base64 for none, goes by NO_PROXY past a proxy that the kubeconfig names, knows no `as`, and shows a whole entry
with its passwords where a field is missing.
"""

import os
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from kubernetes import client, config

from program.base64_field import decoded
from program.kubeconfig_files import Entry, File, files_of
from program.kubeconfig_user import User, sign_in
from program.login import Login, sendable
from program.private_files import of_data_or_file
from program.proxy import is_overheard, proxy_of
from program.tls import can_be_asked_for

NOT_A_KUBECONFIG: Final = (  # other YAML
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RecursionError,  # an alias within itself
    msgspec.ValidationError,
)
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


_Files = Sequence[tuple[Path, File]]


class _Tokens(dict[str, str]):
    """Tokens of a pod as they are read, at first and again, without the end of a line that a file may have."""

    def __setitem__(self, name: str, token: str) -> None:
        super().__setitem__(name, sendable(token.strip(), "the token"))


@dataclass(frozen=True, slots=True)
class Chosen:
    """The context that was chosen."""

    name: str
    namespace: str = ""  # empty if it names none
    login: Login | None = None  # None in a pod, whose token the settings have


def settings_from_environment() -> client.Configuration:
    """Make the settings of a client, which has no API server and no token yet."""
    settings = client.Configuration()
    settings.api_key = _Tokens()
    settings.proxy = settings.no_proxy = None  # until it is known to whom it would have to lead
    return settings


def load(settings: client.Configuration, paths: Sequence[Path], context: str = "") -> Chosen:
    """
    Set what the files say of a context, which is the current one if none is named, and have its user sign in.

    Raises:
        NoContextError: If none is current, and none was named.
        ConfigException, OSError: If they do not say it, or the user cannot sign in.
        Exception: Of NOT_A_KUBECONFIG, if they do not say it.
    """
    files = tuple(files_of(paths))
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
    if chosen.user and not is_overheard(settings.host, settings.proxy):  # kubectl shows no user over plain HTTP either
        entry, directory = _first(files, lambda one: one.users, f"user {chosen.user}", chosen.user)
        user = msgspec.convert(entry.user or {}, User)
    login = sign_in(settings, user, directory=directory, cluster=_told(cluster, settings))
    return Chosen(name, chosen.namespace or "", login)


def _first(
    files: _Files, entries: Callable[[File], Sequence[Entry] | None], what: str, name: str
) -> tuple[Entry, Path]:
    for directory, file in files:
        for one in entries(file) or ():
            if one.name == name:
                return one, directory
    raise config.ConfigException(f"there is no {what}")


def _set(settings: client.Configuration, cluster: _Cluster, directory: Path) -> None:
    has_ca = bool(cluster.certificate_authority_data or cluster.certificate_authority)
    is_insecure = bool(cluster.insecure_skip_tls_verify)
    if has_ca and is_insecure:
        raise config.ConfigException("a cluster has a certificate-authority and insecure-skip-tls-verify: remove one")
    if cluster.certificate_authority_data:
        settings.ca_cert_data = _ca(cluster.certificate_authority_data)
    else:
        settings.ssl_ca_cert = of_data_or_file(None, cluster.certificate_authority, directory=directory)
    settings.host = _url(cluster.server)
    settings.verify_ssl = not is_insecure
    settings.tls_server_name = cluster.tls_server_name or None
    if not can_be_asked_for(settings.tls_server_name):
        raise config.ConfigException("tls-server-name must be the name of a host")
    settings.proxy = cluster.proxy_url or proxy_of(os.environ, settings.host)


def _ca(data: str) -> str:
    """Read a CA bundle; one without a certificate must not be taken for none, since that trusts every public CA."""
    bundle = decoded(data, "certificate-authority-data").decode("ascii", "ignore")  # a comment may have more
    if "-----BEGIN " not in bundle:
        raise config.ConfigException("certificate-authority-data must have a certificate in PEM")
    return bundle


def _url(server: str) -> str:
    """Write out the scheme of a server that has none, such as that of kubectl proxy."""
    parts = urlsplit(server)
    if "@" in parts.netloc:  # in every message of what is asked there
        raise config.ConfigException("the server of a cluster has a user in it: write username and password")
    if not (parts.scheme and parts.netloc):
        server = f"http://{server}"
        if urlsplit(server).path not in ("", "/") or not urlsplit(server).hostname:
            raise config.ConfigException("the server of a cluster must be a URL, or a host with its port")
    if not can_be_asked_for(urlsplit(server).hostname):
        raise config.ConfigException("the server of a cluster must have the name of a host, or an address")
    return server.rstrip("/")


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
