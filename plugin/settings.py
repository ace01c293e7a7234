"""The options of `gpu-share plugin`, as values."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from plugin.shares.preference import AllocationPolicy
from policies.contract import Allocation, SharingStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of `gpu-share plugin`."""

    policies: Path  # directory of policy files; the plugin needs _cluster.yaml of it
    simulate: str | None  # "2xH200" or a file; None advertises NVML's GPUs
    kubelet_dir: Path  # directory of the kubelet's socket and of ours
    state_dir: Path  # directory in which this node's parts publish their state
    lib_dir: Path  # directory of what outlives a restart of the machine
    cdi_dir: Path  # directory of CDI specifications, ours among them
    cdi_static_dir: Path  # another one, in which nothing is written
    toolkit_config: Path  # file of the settings of NVIDIA's container toolkit
    pod_resources: Path  # the kubelet's socket that says who holds what
    pod_name: str  # of the pod that this runs in, "" if in none: the kubelet is believed once it lists that
    pod_uid: str  # likewise its UID, by which its cgroup is known
    cgroups: Path  # directory of the node's cgroups, by which processes are seen that outlive their pod
    allocation_policy: AllocationPolicy
    strategy: SharingStrategy  # of a GPU that no entry of `nodes` in _cluster.yaml fits
    node_name: str  # as `nodes` in _cluster.yaml names it
    application_xids: frozenset[int]  # XIDs that are an application's fault and leave the GPU healthy
    wait_for_gpus: bool  # False ends with an error where there are no GPUs
    allocation: Allocation  # of a GPU whose entry of `nodes` in _cluster.yaml does not say, or that has none
    kubelet_plugins_dir: Path  # directory of the kubelet's plugins, for allocation by DRA
    kubelet_registrar_dir: Path  # directory in which the kubelet looks for them
    service_account: Path  # directory of the token for the API server
    fit_guard: Literal["on", "off"]  # hide free vGPUs that the scheduler would allocate in vain

    @property
    def directories(self) -> dict[str, Path]:
        """Name the directories of the node by which the plugin shares GPUs, by their options; those of DRA serve it."""
        return {
            "--state-dir": self.state_dir,
            "--kubelet-dir": self.kubelet_dir,
            "--pod-resources": self.pod_resources.parent,
            "--cdi-dir": self.cdi_dir,
            "--cdi-static-dir": self.cdi_static_dir,
        }
