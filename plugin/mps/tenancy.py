"""Who is on which GPU, as far as the kubelet says it."""

import logging
from pathlib import Path

from plugin.errors import TenantsError
from plugin.pod_resources.tenants import Tenant, read_tenants

_log = logging.getLogger(__name__)


class Tenancy:
    """The containers that hold vGPUs of one resource; for any thread."""

    def __init__(self, socket: Path, resource: str) -> None:
        self._socket = socket
        self._resource = resource
        self._failure = ""
        self._known: tuple[Tenant, ...] = ()  # when the kubelet last said it

    def read(self) -> tuple[Tenant, ...] | None:
        """Ask the kubelet; None if it does not say, and the log has the reason when that changes."""
        try:
            tenants = read_tenants(self._socket, [self._resource])
        except TenantsError as error:
            if str(error) != self._failure:
                _log.warning("tenants unknown", extra={"reason": str(error)})
            self._failure = str(error)
            return None
        self._failure = ""
        self._known = tenants
        return tenants

    def read_or_known(self) -> tuple[Tenant, ...]:
        """Ask the kubelet; what it said last, if it does not say now."""
        tenants = self.read()
        return self._known if tenants is None else tenants

    def names_on(self, gpu_uuid: str) -> tuple[str, ...]:
        """Name who is on a GPU now, as namespace/pod/container; nobody if that is not known."""
        return tuple(one.name for one in self.read() or () if one.vgpus_on(gpu_uuid))
