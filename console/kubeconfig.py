"""Which API server is meant: that of a kubeconfig, as kubectl finds it, or in a pod that of its service account."""

from pathlib import Path

from kubernetes import client, config

from console.api_server import ApiServer, short
from policies.errors import GpuShareError
from program.api_client import ProxyError
from program.kubeconfig import (
    INVALID_KUBECONFIG,
    NOT_A_KUBECONFIG,
    Chosen,
    NoContextError,
    load,
    paths_of,
    settings_from_environment,
)
from program.login import CredentialError


class NoClusterError(GpuShareError):
    """No cluster can be reached by the kubeconfig; the sentence says why."""


def connect(*, kubeconfig: Path | None = None, context: str = "") -> ApiServer:
    """
    Find the API server as kubectl does: by the kubeconfig, or in a pod by its service account.

    Raises:
        NoClusterError: If there is none.
    """
    settings = settings_from_environment()
    try:
        chosen = _load(settings, kubeconfig, context)
        return ApiServer(settings, context=chosen.name, namespace=chosen.namespace, login=chosen.login)
    except ProxyError as error:
        raise NoClusterError(f"no cluster: {error}") from None


def _load(settings: client.Configuration, kubeconfig: Path | None, context: str) -> Chosen:
    paths = paths_of(kubeconfig)
    try:
        return load(settings, paths, context)
    except INVALID_KUBECONFIG as error:
        # A kubeconfig that is broken must not lead to another cluster.
        is_none = isinstance(error, NoContextError) and not (kubeconfig or context)
        if is_none and (chosen := _in_a_pod(settings)):
            return chosen
        raise NoClusterError(f"no cluster: {_fault(error, paths)}") from None


def _in_a_pod(settings: client.Configuration) -> Chosen | None:
    try:
        config.load_incluster_config(settings)  # type: ignore[no-untyped-call] # published without types
    except config.ConfigException:
        return None
    return Chosen("(in the cluster)")


def _fault(error: Exception, paths: str) -> str:
    """Say what is wrong with a kubeconfig, which may be several files with colons between them."""
    if not any(Path(one).expanduser().exists() for one in paths.split(":") if one):
        return f"{paths} does not exist: set KUBECONFIG, or name a file by --kubeconfig"
    if isinstance(error, CredentialError):
        return short(error)
    if isinstance(error, NOT_A_KUBECONFIG):
        return f"{paths} is not a valid kubeconfig: compare it with kubectl config view"
    return f"{short(error).rstrip('.')}: correct the kubeconfig, or name another context by --context"
