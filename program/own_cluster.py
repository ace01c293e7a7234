"""The cluster that a pod runs in, by its service account."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kubernetes import client, config

from program.proxy import proxy_of
from program.tls import can_be_asked_for

DIRECTORY: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def set_own_cluster(settings: client.Configuration) -> None:
    """
    Set what a pod is told of its cluster.

    Raises:
        ConfigException: If this is no pod, or it is told too little.
    """
    invalid = config.ConfigException("the service account, or the address of the API server, is invalid")
    try:
        config.load_incluster_config(settings)  # type: ignore[no-untyped-call] # published without types
        host = urlsplit(settings.host).hostname
        settings.proxy = proxy_of(os.environ, settings.host)
    except OSError as error:
        raise config.ConfigException(f"the service account cannot be read: {error.strerror}") from None
    except ValueError:  # a port that is no number, or a file that is no text
        raise invalid from None
    if not can_be_asked_for(host):
        raise invalid


def is_in_a_pod(environment: Mapping[str, str]) -> bool:
    """Whether a pod's environment says where its API server is."""
    return bool(environment.get("KUBERNETES_SERVICE_HOST") and environment.get("KUBERNETES_SERVICE_PORT"))


def own_namespace(environment: Mapping[str, str], directory: Path = DIRECTORY) -> str:
    """Say which namespace kubectl takes where none is named: a pod's own, and elsewhere the default."""
    if not (is_in_a_pod(environment) and (directory / "token").is_file()):
        return "default"
    if named := environment.get("POD_NAMESPACE"):
        return named
    try:
        return (directory / "namespace").read_text(encoding="utf-8").strip() or "default"
    except (OSError, ValueError):
        return "default"
