"""What the administrator chose for this node."""

from dataclasses import dataclass
from pathlib import Path

from plugin.preference import AllocationPolicy
from policies.contract import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of `gpu-share plugin`."""

    policies: Path  # folder of policy files; the plugin needs _cluster.yaml of it
    simulate: str | None  # "2xH200" or a file; None offers NVML's GPUs
    kubelet_dir: Path  # folder of the kubelet's socket and of ours
    allocation_policy: AllocationPolicy
    strategy: Strategy  # how the GPUs are shared; each strategy has its own resource
    wait_for_gpus: bool  # False ends with an error where there are no GPUs
