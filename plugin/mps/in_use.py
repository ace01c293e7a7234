"""Which GPUs containers hold shares of by MPS, or may, by all that is known."""

import logging
from collections.abc import Iterable, Sequence

from plugin.pod_resources.tenancy import Tenancy
from plugin.pod_resources.tenants import Tenant
from plugin.shares.last_parts import LastParts
from plugin.shares.parts_file import Checkpoint, CheckpointError

_log = logging.getLogger(__name__)


class GpusInUse:
    """What the kubelet says and what the plugin has written, together; for any thread."""

    def __init__(self, tenancy: Tenancy, parts: LastParts) -> None:
        self._tenancy = tenancy
        self._parts = parts

    def held(self, uuids: frozenset[str]) -> frozenset[str]:
        """Name those of which a container has a share by MPS, or may: the kubelet does not say, or nobody where."""
        found = self._among(uuids, self._tenancy.read())
        return uuids if found is None else found

    def is_idle(self) -> bool:
        """Whether it is known that no container has a share by MPS of any GPU, but for init containers by DRA."""
        tenants = self._tenancy.read()
        if tenants is None or any(one.has_share_by_mps for one in tenants):
            return False
        return self._known(tenants) == frozenset()

    def of(self, uuids: frozenset[str], *, told: bool = False) -> frozenset[str]:
        """
        Name the GPUs that stay exclusive although they have no daemon: a container holds a share of them, or may.

        All of its programs would come back without limits otherwise; so the first one does, and the rest wait for MPS.
        *uuids* are those that this run supervises, or whose mode an earlier one has changed. The log says which stay,
        unless that was *told*.
        """
        level = logging.DEBUG if told else logging.WARNING
        if not uuids:
            return uuids
        tenants = self._tenancy.read_or_known()
        kept = self._among(uuids, tenants)
        if tenants is None or kept is None:  # which is not nobody: the record of the modes stays for a later end
            reason = "the kubelet has not said who holds shares" if tenants is None else "nobody knows where shares are"
            _log.log(level, f"compute modes stay exclusive: {reason}", extra={"gpus": sorted(uuids)})
            return uuids
        for uuid in sorted(kept):
            _log.log(
                level,
                "compute mode stays exclusive while containers hold shares: restored when they have ended",
                extra={"gpu": uuid, "tenants": [one.name for one in tenants if one.has_share_by_mps_of(uuid)]},
            )
        return kept

    def _among(self, uuids: frozenset[str], tenants: Sequence[Tenant] | None) -> frozenset[str] | None:
        """Name those that *tenants* have a share of, or others beside them; None where that is not known."""
        known = self._known(tenants or ())
        if tenants is None or known is None:
            return None
        return frozenset(
            uuid for uuid in uuids if uuid in known or any(one.has_share_by_mps_of(uuid) for one in tenants)
        )

    def _known(self, tenants: Iterable[Tenant]) -> frozenset[str] | None:
        """
        Name the GPUs of which containers hold vGPUs beside *tenants*; None where it is not known on which GPU one is.

        The kubelet names no init containers, and for minutes after its start not all others.
        """
        try:
            last, kept = self._parts.read() or Checkpoint(1, {}), self._parts.kept()
        except CheckpointError:
            return None
        unnamed = last.unnamed_on(vgpu for one in tenants for vgpu in one.vgpus)
        return None if unnamed is None else unnamed | kept.on(self._tenancy.resources())
