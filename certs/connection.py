"""The API server that certificates are kept at: of the cluster that the program runs in, or of a kubeconfig."""

from typing import Final

from kubernetes import client, config
from urllib3.util import Retry

from certs.errors import NoClusterError
from program.api_client import ProxyError, api_client
from program.kubeconfig import INVALID_KUBECONFIG, NOT_A_KUBECONFIG, load, settings_from_environment
from program.kubeconfig_files import paths_of
from program.own_cluster import set_own_cluster

# Of connections alone: an answer is final, however long it says to wait, and a pass that fails is made again.
_RETRIES: Final = Retry(3, respect_retry_after_header=False)


def connect() -> client.ApiClient:
    """
    Return a client for the cluster that this process runs in, or else that the kubeconfig names.

    Raises:
        NoClusterError: If there is neither, or the kubeconfig or the proxy is invalid.
    """
    settings, login = settings_from_environment(), None
    settings.retries = _RETRIES
    try:
        set_own_cluster(settings)
    except config.ConfigException as outside:
        try:
            login = load(settings, paths_of()).login
        except INVALID_KUBECONFIG as error:
            invalid = "The kubeconfig is not valid: compare it with kubectl config view"
            reasons = f"{str(outside).rstrip('.')}. {invalid if isinstance(error, NOT_A_KUBECONFIG) else error}"
            raise NoClusterError(f"no cluster: run in a pod, or set KUBECONFIG: {' '.join(reasons.split())}") from None
    try:
        return api_client(settings, login)
    except ProxyError as error:
        raise NoClusterError(f"no cluster: {error}") from None
