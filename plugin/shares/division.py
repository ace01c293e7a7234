"""What each GPU of a node is to those who ask for shares: its device, its resource, and how many vGPUs it has."""

from plugin.gpus.gpu import Gpu
from plugin.gpus.numbers import NumberOf
from plugin.shares.strategy import SharedGpu
from policies.cluster import Cluster
from policies.contract import WHOLE, SharingStrategy
from policies.device_names import GPU_DEVICE, of_profile
from policies.nodes import NodeRule


class Division:
    """Answers for the GPUs of one node, by `_cluster.yaml`; from any thread."""

    def __init__(self, cluster: Cluster, *, node_name: str, number_of: NumberOf) -> None:
        self._cluster = cluster
        self.vgpus_per_gpu = cluster.vgpus_per_gpu  # of all GPUs that have no number of their own
        self._node_name = node_name
        self._number_of = number_of

    def set_vgpus_per_gpu(self, vgpus_per_gpu: int) -> None:
        """Divide GPUs by another number from now on, but for those that have one of their own."""
        self.vgpus_per_gpu = vgpus_per_gpu

    def by(self, vgpus_per_gpu: int) -> "Division":
        """Return what would be said with another number for all GPUs that have none of their own."""
        made = Division(self._cluster, node_name=self._node_name, number_of=self._number_of)
        made.set_vgpus_per_gpu(vgpus_per_gpu)
        return made

    def device(self, gpu: Gpu) -> str:
        """Name what shares of a GPU, or MIG instance, are of."""
        if gpu.instance:
            return of_profile(gpu.profile)
        rule = self._rule(gpu)
        return GPU_DEVICE if rule is None else rule.of_device

    def resource(self, gpu: Gpu, strategy: SharingStrategy) -> str:
        """Name the extended resource of a GPU, or MIG instance, under a strategy."""
        return self._cluster.resource(strategy, self.device(gpu))

    def resource_of(self, shared: SharedGpu) -> str:
        """Name the extended resource of what is shared."""
        return self.resource(shared.gpu, shared.strategy)

    def parts(self, gpu: Gpu, strategy: SharingStrategy) -> int:
        """Count the vGPUs that a GPU, or MIG instance, is divided into under a strategy."""
        return 1 if strategy == WHOLE else self._own_parts(gpu) or self.vgpus_per_gpu

    def parts_of_resource(self, strategy: SharingStrategy, device: str) -> int:
        """Count the vGPUs of each GPU of a resource of the device plugin, whose unit is the same on all nodes."""
        return 1 if strategy == WHOLE else self._cluster.own_parts(device) or self.vgpus_per_gpu

    def parts_of_resource_of(self, shared: SharedGpu) -> int:
        """Count the vGPUs that what is shared has with the device plugin."""
        return self.parts_of_resource(shared.strategy, self.device(shared.gpu))

    def follows(self, strategy: SharingStrategy, device: str) -> bool:
        """Whether that is `vgpusPerGpu`: of whole GPUs it is 1, and some devices have a number of their own."""
        return strategy != WHOLE and self._cluster.own_parts(device) is None

    def _own_parts(self, gpu: Gpu) -> int | None:
        if device := self.device(gpu):
            return self._cluster.own_parts(device)
        rule = self._rule(gpu)
        return None if rule is None else rule.vgpus_per_gpu

    def _rule(self, gpu: Gpu) -> NodeRule | None:
        return self._cluster.rule(node=self._node_name, model=gpu.model, index=self._number_of(gpu))
