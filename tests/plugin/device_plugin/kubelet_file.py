"""The kubelet's own checkpoint of what its plugins have answered, as Kubernetes 1.36 writes it."""

import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from plugin.simulated.device_manager import DeviceManager
from plugin.simulated.kubelet import SimulatedKubelet

FILE = "kubelet_internal_checkpoint"
Entry = dict[str, Any]


def entry(resource: str, ids: Sequence[str], answer: bytes, *, pod: str = "0a1b", container: str = "main") -> Entry:
    return {
        "PodUID": pod,
        "ContainerName": container,
        "ResourceName": resource,
        "DeviceIDs": {"-1": list(ids)},
        "AllocResp": b64encode(answer).decode(),
    }


def entries(manager: DeviceManager | SimulatedKubelet) -> list[Entry]:
    """Write what containers have, those that have ended too as long as the kubelet has not heard of it."""
    return [
        entry(held.resource, held.device_ids, answer, pod=held.pod, container=held.container)
        for held, answer in manager.answers()
    ]


def write_checkpoint(directory: Path, of: Iterable[Entry]) -> None:
    data = {"PodDeviceEntries": list(of), "RegisteredDevices": {"nvidia.com/gpu": ["GPU-a"]}}
    (directory / FILE).write_text(json.dumps({"Data": data, "Checksum": 2389472983}))


def replace_checkpoint(directory: Path, of: Iterable[Entry]) -> None:
    """Write it as the kubelet does: a file in place of another."""
    new = directory / "new"
    new.mkdir(exist_ok=True)
    write_checkpoint(new, of)
    (new / FILE).replace(directory / FILE)
