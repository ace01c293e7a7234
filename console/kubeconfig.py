"""Which API server is meant: that of a kubeconfig, as kubectl finds it, or in a pod that of its service account."""

import os
from pathlib import Path

from kubernetes import client, config

from console.api_server import ApiServer
from console.no_answer import short
from policies.errors import GpuShareError
from program.api_client import ProxyError
from program.kubeconfig import (
    INVALID_KUBECONFIG,
    NOT_A_KUBECONFIG,
    Chosen,
    NoContextError,
    load,
    settings_from_environment,
)
from program.kubeconfig_files import exist, paths_of, shown
from program.login import CredentialError
from program.own_cluster import is_in_a_pod, own_namespace, set_own_cluster


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
        namespace = chosen.namespace or own_namespace(os.environ)
        return ApiServer(settings, context=chosen.name, namespace=namespace, login=chosen.login)
    except ProxyError as error:
        raise NoClusterError(f"no cluster: {error}") from None


def _load(settings: client.Configuration, kubeconfig: Path | None, context: str) -> Chosen:
    paths = paths_of(kubeconfig)
    try:
        return load(settings, paths, context)
    except INVALID_KUBECONFIG as error:
        fault = _fault(error, paths)
        # A kubeconfig that is broken must not lead to another cluster.
        if isinstance(error, NoContextError) and not (kubeconfig or context) and is_in_a_pod(os.environ):
            return _in_a_pod(settings, fault)
        raise NoClusterError(f"no cluster: {fault}") from None


def _in_a_pod(settings: client.Configuration, fault: str) -> Chosen:
    try:
        set_own_cluster(settings)
    except config.ConfigException as error:
        reason = short(error).rstrip(".")
        raise NoClusterError(f"no cluster: the pod's service account cannot be used: {reason}; and {fault}") from None
    return Chosen("(in the cluster)")


def _fault(error: Exception, paths: tuple[Path, ...]) -> str:
    """Say what is wrong with a kubeconfig, which may be several files."""
    names = shown(paths)
    if not exist(paths):
        if not names:
            return "KUBECONFIG must be paths of files: is it the content of a kubeconfig?"
        return f"{names} does not exist: set KUBECONFIG, or name a file by --kubeconfig"
    if isinstance(error, CredentialError):
        return short(error)
    if isinstance(error, NOT_A_KUBECONFIG):
        return f"{names} is not a valid kubeconfig: compare it with kubectl config view"
    return f"{short(error).rstrip('.')}: correct the kubeconfig, or name another context by --context"
