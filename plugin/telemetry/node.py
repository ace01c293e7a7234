"""
From the files of this node's parts to the one document of `policies/node_state.py`.

Each part writes what it alone knows, and whichever part is asked puts all of it together, with the age of each kind of
facts. What is too old to be true, such as what containers take of a GPU that nobody measures any more, is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import msgspec

from plugin.health import state as health
from plugin.mps import state as mps
from plugin.mps.holders import holders, of_node, outsiders_of
from plugin.pod_resources.occupancy import FRESH_SECONDS, GpuOccupancy, NodeOccupancy, Occupant, read_occupancy
from plugin.state_files import boot_seconds
from plugin.usage import record as usage
from policies.contract import MPS
from policies.node_state import (
    VERSION,
    Ages,
    ApplicationFault,
    Fault,
    Gpu,
    MpsDaemon,
    NodeState,
    NotRegistered,
    Tenant,
    Use,
)
from policies.node_values import printable

_MIB = 1024 * 1024
_NO_OCCUPANCY = "gpu-share plugin has not said yet who has which share"
_OLD_OCCUPANCY = "the kubelet has not said for a while who has which share"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the parts of this node have written; None where they have not since the machine started."""

    boot_id: str
    now_seconds: float  # `state_files.boot_seconds`, after all was read
    health: health.NodeHealth | None
    occupancy: NodeOccupancy | None
    mps: mps.MpsState | None
    use: usage.NodeUse | None


def read_facts(state_dir: Path, *, boot_id: str) -> Facts:
    """Read what there is; it costs a fraction of a millisecond, and waits for nobody."""
    node, daemons = health.read_node_health(state_dir), mps.read_state(state_dir)
    occupancy, use = read_occupancy(state_dir, boot_id=boot_id), usage.read_use(state_dir, boot_id=boot_id)
    return Facts(
        boot_id=boot_id,
        now_seconds=boot_seconds(),
        health=node if node is not None and node.boot_id == boot_id else None,
        occupancy=occupancy,
        mps=daemons if daemons is not None and daemons.boot_id == boot_id else None,
        use=use,
    )


def node_state(facts: Facts, *, part: str, node: str) -> NodeState:
    """Put together what is known of a node; *part* is who says it."""
    known = facts.health
    waits = known is not None and known.waiting is not None
    return NodeState(
        version=VERSION,
        part=part,
        program=_program(),
        node=node,
        driver=printable(known.driver) if known else "",
        ages=_ages(facts),
        waiting=printable(known.waiting.why) if known and known.waiting else "",
        tenants_unknown=printable(_tenants_unknown(facts)),
        # Those of a plugin that waits are from before: nobody has looked at them since.
        gpus=tuple(_gpu(gpu, facts) for gpu in known.gpus) if known and not waits else (),
        skipped=tuple(map(printable, known.skipped)) if known else (),
        left_to_others=known.left_to_others if known else None,
        handover=printable(known.handover) if known else "",
        slices_not_published=printable(known.slices_not_published) if known else "",
        not_registered=_not_registered(known.not_registered) if known else (),
        toolkit=known.toolkit if known else None,
        restart_needed=tuple(map(printable, known.restart_needed)) if known else (),
        not_taken=printable(known.not_taken) if known else "",
    )


def _not_registered(known: tuple[health.NotRegistered, ...]) -> tuple[NotRegistered, ...]:
    return tuple(NotRegistered(resource=one.resource, why=printable(one.why)) for one in known)


@cache
def _program() -> str:
    return version("gpu-share")


def _ages(facts: Facts) -> Ages:
    daemons = facts.mps.gpus.values() if facts.mps else ()
    checked = min((one.checked_seconds for one in daemons), default=None)
    return Ages(
        health=_age(facts, facts.health.heartbeat_seconds if facts.health else None),
        tenants=_age(facts, facts.occupancy.looked_seconds if facts.occupancy else None),
        mps=_age(facts, checked),
        use=_age(facts, facts.use.measured_seconds if facts.use else None),
    )


def _age(facts: Facts, at_seconds: float | None) -> float | None:
    return None if at_seconds is None else round(max(0.0, facts.now_seconds - at_seconds), 3)


def _tenants_unknown(facts: Facts) -> str:
    age_seconds = _ages(facts).tenants
    if facts.occupancy is None:
        return _NO_OCCUPANCY
    if facts.occupancy.unknown or age_seconds is None:
        return facts.occupancy.unknown or _NO_OCCUPANCY
    return _OLD_OCCUPANCY if age_seconds > FRESH_SECONDS else ""


def _gpu(gpu: health.GpuHealth, facts: Facts) -> Gpu:
    shared = facts.occupancy.gpus.get(gpu.uuid) if facts.occupancy else None
    last = gpu.application_fault
    made = Gpu(
        uuid=gpu.uuid,
        index=gpu.index,
        model=printable(gpu.model),
        resource=gpu.resource,
        healthy=gpu.healthy,
        since=gpu.since,
        faults=tuple(
            Fault(
                source=one.source,
                why=printable(one.why),
                since=one.since,
                comes_back=printable(one.comes_back),
                xid=one.xid,
            )
            for one in gpu.faults
        ),
        application_fault=ApplicationFault(xid=last.xid, at=last.at, tenants=tuple(map(printable, last.tenants)))
        if last
        else None,
        mps_daemon=_daemon(gpu.uuid, facts),
        compute_mode=gpu.compute_mode,
        memory_bytes=gpu.memory_mib * _MIB or None,
    )
    used = usage.fresh(facts.use, now_seconds=facts.now_seconds).get(gpu.uuid)
    known = holders(facts.occupancy, now_seconds=facts.now_seconds)
    made = msgspec.structs.replace(made, outsiders=outsiders_of(gpu.uuid, used, known), of_node=of_node(used))
    return made if shared is None else _shared(made, shared, used)


def _daemon(uuid: str, facts: Facts) -> MpsDaemon | None:
    daemon = facts.mps.gpus.get(uuid) if facts.mps else None
    if daemon is None:
        return None
    why = mps.fault(facts.mps, uuid, now_seconds=facts.now_seconds, boot_id=facts.boot_id)
    return MpsDaemon(state=daemon.state, since=daemon.since, why=printable(why or ""))


def _shared(gpu: Gpu, shared: GpuOccupancy, used: usage.GpuUse | None) -> Gpu:
    by_name = {(one.namespace, one.pod, one.container): one for one in used.containers} if used else {}
    return msgspec.structs.replace(
        gpu,
        resource=shared.resource,
        device=shared.device,
        strategy=shared.strategy,
        allocation=shared.allocation,
        limits_enforced_by=MPS if shared.strategy == MPS else "",
        vgpus_per_gpu=shared.vgpus_per_gpu,
        parts=shared.parts,
        advertised=shared.advertised,
        granted=shared.granted,
        hidden=shared.hidden,
        outlived=shared.outlived,
        free=shared.free if gpu.healthy or shared.free is None else 0,
        largest_free=shared.largest_free if gpu.healthy or shared.largest_free is None else 0,
        tenants=tuple(_tenant(one, by_name, used) for one in shared.occupants),
    )


def _tenant(
    one: Occupant, by_name: Mapping[tuple[str, str, str], usage.ContainerUse], used: usage.GpuUse | None
) -> Tenant:
    measured = by_name.get((one.namespace, one.pod, one.container))
    use: Use | None
    if measured is not None:
        use = Use(memory_bytes=measured.memory_bytes, sm_ratio=measured.sm_ratio, processes=measured.processes)
    else:  # it is known to take nothing only if it is known of all processes whose they are
        use = Use(memory_bytes=0, processes=0) if used is not None and used.complete else None
    return Tenant(
        namespace=one.namespace,
        pod=one.pod,
        container=one.container,
        parts=one.parts,
        memory_limit_bytes=None if one.memory_limit_mib is None else one.memory_limit_mib * _MIB,
        thread_limit_ratio=None if one.thread_percentage is None else one.thread_percentage / 100,
        since=one.since,
        use=use,
    )
