"""Resources that advertise GPUs as they are seen, without a kubelet."""

from dataclasses import dataclass

from plugin.device_plugin.resources import Resources
from plugin.device_plugin.service import Resource
from plugin.gpus.gpu import Gpu
from plugin.settings import Settings
from plugin.simulated.gpus import simulated_gpus
from policies.cluster import Cluster
from policies.contract import Handover, SharingStrategy
from tests.plugin.health.watched_node import SETTINGS, resources_of

GPUS = simulated_gpus("4xH200")


@dataclass(frozen=True)
class Seen:
    gpu: Gpu
    strategy: SharingStrategy
    why: str = ""
    is_reached: bool = True


def advertising(served: list[Resource], *ways: Handover, **changed: object) -> Resources:
    settings = Settings(**{**SETTINGS, "strategy": "mps", **changed})
    return resources_of(settings, Cluster(vgpus_per_gpu=4, handover=ways or ("envvar",)), serve=served.append)


def seen(*gpus: Gpu, why: str = "", strategy: SharingStrategy = "mps") -> list[Seen]:
    return [Seen(gpu, strategy, why) for gpu in gpus]


def healthy(resource: Resource) -> list[bool]:
    return [device.healthy for device in next(iter(resource.devices.watch()))]
