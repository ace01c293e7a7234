"""What a user of a cluster sees, in the words of our own programs: the messages in docs/troubleshooting.md."""

import tempfile
from pathlib import Path

import pytest
import yaml

from plugin.device_plugin.devices import Devices
from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.service import DevicePluginService, Resource
from plugin.gpus.gpu import Pool
from plugin.health.gpu_state import GpuState, Moment
from plugin.health.reports import Event
from plugin.health.rules import after_event
from plugin.health.state import write_node_health
from plugin.mps.state import MpsGpu, MpsState, write_state
from plugin.pod_resources.occupancy import GpuOccupancy, NodeOccupancy, write_occupancy
from plugin.shares.strategy import TimeSlicing
from plugin.simulated.device_manager import PluginCallError
from plugin.simulated.gpus import simulated_gpus
from plugin.state_files import boot_id, boot_seconds
from policies.reading.store import load
from tests.docs.pages import ROOT
from tests.plugin.device_plugin.walk import ServiceAsPlugin
from tests.plugin.health.published import ago, healthy, node, occupant, occupied, status
from tests.webhook.reviews import answer, call

_FAILED, _FINE = (gpu.uuid for gpu in simulated_gpus("2xH200"))
_TOO_LARGE = "policies/examples/5-too-large.yaml"


def denied_pod() -> str:
    where = f'Error from server ({_denied()["reason"]}): error when creating "{_TOO_LARGE}"'
    return _block(f"$ kubectl create -f {_TOO_LARGE}\n{where}: {denial()}")


def pod_without_a_grant() -> str:
    policy = next(yaml.safe_load_all((ROOT / "manifests/base/admission-policy.yaml").read_text()))
    (message,) = (
        one["message"] for one in policy["spec"]["validations"] if one["expression"].startswith("variables.grant != ''")
    )
    name = policy["metadata"]["name"]
    denied = f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: {message}"
    return _block(f'The pods "resnet" is invalid: : {denied}')


def fragmented_pod() -> str:
    pool = Pool(gpus=simulated_gpus("2xH200"), vgpus_per_gpu=10)
    devices, held = Devices(pool, only_one="a process reaches one GPU through MPS"), HeldVgpus()
    held.follow(devices, are_divided=True)
    held.refresh()
    resource = Resource(
        name="gpu-share.dev/vgpu", devices=devices, sharing=TimeSlicing(), allocation_policy="pack", held=held
    )
    plugin = ServiceAsPlugin(DevicePluginService(resource, on_end=lambda _: None))
    plugin.allocate([f"{_FAILED}::{index}" for index in range(7)])
    plugin.allocate([f"{_FINE}::{index}" for index in range(9)])
    with pytest.raises(PluginCallError) as rejected:
        plugin.allocate([f"{_FAILED}::{index}" for index in (7, 8, 9)] + [f"{_FINE}::9"])
    failure = f"rpc error: code = FailedPrecondition desc = {str(rejected.value).partition(': ')[2]}"
    return _block(
        "Status:           Failed\n"
        "Reason:           UnexpectedAdmissionError\n"
        f"Message:          Pod was rejected: Allocate failed due to {failure}, which is unexpected"
    )


def status_of_a_node() -> str:
    moment = Moment(seconds=0, text=ago(minutes=5))
    state = after_event(
        GpuState(tells_recovery=True), Event(seconds=0, gpu_uuid=_FAILED, what="XID 79", xid=79), moment
    )
    gpus = (
        healthy(0, uuid=_FAILED, model="NVIDIA H200", since=moment.text, faults=state.faults),
        healthy(1, uuid=_FINE, model="NVIDIA H200", since=ago(hours=4)),
    )
    ready = MpsGpu(state="ready", since=ago(hours=4), checked_seconds=boot_seconds())
    with tempfile.TemporaryDirectory() as directory:
        write_node_health(Path(directory), node(*gpus, heartbeat_seconds=boot_seconds() - 2))
        write_state(Path(directory), MpsState(boot_id=boot_id(), gpus={_FAILED: ready, _FINE: ready}))
        write_occupancy(
            Path(directory), NodeOccupancy(boot_id=boot_id(), looked_seconds=boot_seconds(), gpus=_shares())
        )
        return _block(status(Path(directory)).stdout)


def _shares() -> dict[str, GpuOccupancy]:
    """Two containers on the first GPU, and one on the second."""
    one, two, three = (
        occupant(pod, parts, namespace=namespace, since=ago(hours=hours))
        for namespace, pod, parts, hours in (
            ("team-vision", "resnet-0", 2, 3.9),
            ("team-language", "bert-0", 5, 3.5),
            ("team-vision", "resnet-1", 4, 2),
        )
    )
    return {_FAILED: occupied(one, two), _FINE: occupied(three)}


def denial() -> str:
    """Say what the API server says to whoever creates the example that is too large."""
    return f'admission webhook "pods.gpu-share.dev" denied the request: {_denied()["message"]}'


def _denied() -> dict[str, str]:
    """Ask the webhook about it."""
    pod = yaml.safe_load((ROOT / _TOO_LARGE).read_text())
    called = call(pod, namespace=pod["metadata"]["namespace"])
    status_of_it: dict[str, str] = answer(called, load(ROOT / "policies" / "files"))["status"]
    return status_of_it


def _block(text: str) -> str:
    return f"```\n{text.rstrip()}\n```"
