"""What the administrator chose for this node's MPS daemons."""

from dataclasses import dataclass
from pathlib import Path

from policies.contract import SharingStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsSettings:
    """The options of `gpu-share mps`."""

    policies: Path  # folder of policy files
    state_dir: Path  # folder in which this node's parts tell each other how they are
    pod_resources: Path  # the kubelet's socket that says who holds what
    strategy: SharingStrategy  # what a GPU is offered as that no entry of `nodes` in _cluster.yaml fits
    node_name: str  # as `nodes` in _cluster.yaml names it
    control: str  # the program nvidia-cuda-mps-control, by name or path
    multi_user: bool  # one server for the users of all tenants
    wait_for_gpus: bool  # False ends with an error where there are no GPUs
