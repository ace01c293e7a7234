"""What `gpu-share mps` is told, and what the supervisors of its daemons get of it."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from plugin.gpus.numbers import NumberOf
from plugin.gpus.nvml import load_nvml
from plugin.mps.compute_mode import ComputeModes
from plugin.mps.daemon_supervisor import SupervisorContext
from plugin.mps.mount_sources import mount_sources
from plugin.mps.place import Place
from plugin.mps.timing import Timing
from plugin.pod_resources.tenancy import Tenancy
from plugin.pod_resources.tenants import OurResources
from plugin.shares.division import Division
from plugin.shares.last_parts import LastParts
from plugin.state_files import boot_id
from policies.cluster import Cluster
from policies.contract import MPS, SharingStrategy

_MODES_FILE: Final = "compute-modes.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsSettings:
    """The options of `gpu-share mps`."""

    policies: Path  # directory of policy files
    state_dir: Path  # directory in which this node's parts publish their state
    lib_dir: Path  # directory of what outlives a restart of the machine
    log_dir: Path  # directory of the logs that NVIDIA's programs write; not in memory, as the former can be
    pod_resources: Path  # the kubelet's socket that says who holds what
    pod_name: str  # of the pod that this runs in, "" if in none: the kubelet is believed once it lists that
    strategy: SharingStrategy  # of a GPU that no entry of `nodes` in _cluster.yaml fits
    node_name: str  # as `nodes` in _cluster.yaml names it
    container_logs: Path  # directory of the links to the logs of all containers, whose names say which is which
    control: str  # the program nvidia-cuda-mps-control, by name or path
    multi_user: bool  # one server for the users of all tenants
    wait_for_gpus: bool  # False ends with an error where there are no GPUs


def supervisor_context(
    settings: MpsSettings, cluster: Cluster, number_of: NumberOf, timing: Timing
) -> SupervisorContext:
    """Say what the supervisors of all daemons share, by the settings and `_cluster.yaml` of the start."""
    boot, parts = boot_id(), LastParts(settings.state_dir)
    ours = partial(OurResources, partial(cluster.is_of, MPS), partial(_other_names, cluster, parts))
    return SupervisorContext(
        place=Place(
            pipe_directory=Path(cluster.mps.pipe_directory),
            mount_sources=mount_sources(settings.state_dir),
            log_directory=settings.log_dir,
            program=settings.control,
            multi_user=settings.multi_user,
        ),
        state_dir=settings.state_dir,
        boot_id=boot,
        modes=ComputeModes(load_nvml, record=settings.state_dir / _MODES_FILE, boot_id=boot),
        tenancy=Tenancy(settings.pod_resources, ours, own_pod=settings.pod_name, bindings=parts.bindings),
        parts=parts,
        timing=timing,
        container_logs=settings.container_logs,
        device_of=lambda newest, gpu: Division(newest, node_name=settings.node_name, number_of=number_of).device(gpu),
    )


def _other_names(cluster: Cluster, parts: LastParts) -> frozenset[str]:
    """Name the resources that something is held as, and that `_cluster.yaml` had before, or has since this start."""
    return frozenset(name for name in parts.resources() if not cluster.is_ours(name))
