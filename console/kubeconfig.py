"""Which API server is meant: that of a kubeconfig, as kubectl finds it, or in a pod that of its service account."""

from pathlib import Path

import msgspec
from kubernetes import client, config
from kubernetes.config.kube_config import KUBE_CONFIG_DEFAULT_LOCATION

from console.api_server import ApiServer, short
from policies.errors import GpuShareError
from program.api_client import INVALID_KUBECONFIG, NOT_A_KUBECONFIG, ProxyError


class NoClusterError(GpuShareError):
    """No cluster can be reached by the kubeconfig; the sentence says why."""


class _Settings(msgspec.Struct, frozen=True):
    namespace: str | None = None


class _Context(msgspec.Struct, frozen=True):  # of a kubeconfig
    name: str = ""
    context: _Settings | None = None


def connect(*, kubeconfig: Path | None = None, context: str = "") -> ApiServer:
    """
    Find the API server as kubectl does: by the kubeconfig, or in a pod by its service account.

    Raises:
        NoClusterError: If there is none.
    """
    settings = client.Configuration()
    try:
        chosen = _load(settings, kubeconfig, context)
        namespace = (chosen.context and chosen.context.namespace) or "default"
        return ApiServer(settings, context=chosen.name, namespace=namespace)
    except ProxyError as error:
        raise NoClusterError(f"no cluster: {error}") from None


def _load(settings: client.Configuration, kubeconfig: Path | None, context: str) -> _Context:
    path = str(kubeconfig or KUBE_CONFIG_DEFAULT_LOCATION)
    try:
        contexts, current = config.list_kube_config_contexts(path)  # type: ignore[no-untyped-call] # published without types
        config.load_kube_config(  # type: ignore[no-untyped-call] # likewise
            path, context=context or None, client_configuration=settings, persist_config=False
        )
        chosen = next((one for one in contexts if one["name"] == context), None) if context else current
        return msgspec.convert(chosen or {}, _Context)
    except (*INVALID_KUBECONFIG, msgspec.ValidationError) as error:
        if not (kubeconfig or context):
            try:
                config.load_incluster_config(settings)  # type: ignore[no-untyped-call] # likewise
            except config.ConfigException:
                pass
            else:
                return _Context("(in the cluster)")
        raise NoClusterError(f"no cluster: {_fault(error, path)}") from None


def _fault(error: Exception, kubeconfig: str) -> str:
    """Say what is wrong with a kubeconfig, which may be several files with colons between them."""
    if not any(Path(one).expanduser().exists() for one in kubeconfig.split(":") if one):
        return f"{kubeconfig} does not exist: set KUBECONFIG, or name a file by --kubeconfig"
    if isinstance(error, (*NOT_A_KUBECONFIG, msgspec.ValidationError)):
        return f"{kubeconfig} is not a valid kubeconfig: compare it with kubectl config view"
    return f"{short(error).rstrip('.')}: correct the kubeconfig, or name another context by --context"
