"""What the administrator chose for this node."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from plugin.shares.preference import AllocationPolicy
from policies.contract import SharingStrategy

Handover = Literal["envvar", "cdi", "devices"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of `gpu-share plugin`."""

    policies: Path  # folder of policy files; the plugin needs _cluster.yaml of it
    simulate: str | None  # "2xH200" or a file; None offers NVML's GPUs
    kubelet_dir: Path  # folder of the kubelet's socket and of ours
    state_dir: Path  # folder in which this node's parts tell each other how they are
    cdi_dir: Path  # folder of CDI specifications
    pod_resources: Path  # the kubelet's socket that says who holds what
    allocation_policy: AllocationPolicy
    strategy: SharingStrategy  # what a GPU is offered as that no entry of `nodes` in _cluster.yaml fits
    node_name: str  # as `nodes` in _cluster.yaml names it
    device_handover: frozenset[Handover]  # how a container gets its GPU
    application_xids: frozenset[int]  # XIDs that are a program's fault and leave the GPU healthy
    wait_for_gpus: bool  # False ends with an error where there are no GPUs
