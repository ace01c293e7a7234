import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from threading import Thread
from time import monotonic

import pytest

from plugin.device_plugin.devices import Devices
from plugin.device_plugin.held import HeldVgpus
from plugin.device_plugin.registration import ResourceServer
from plugin.device_plugin.service import Resource
from plugin.gpus.gpu import Pool
from plugin.shares.strategy import Mps
from plugin.simulated.gpus import simulated_gpus
from plugin.simulated.kubelet import SimulatedKubelet
from tests.plugin.plugin_process import Plugin, Start

StartPlugin = Callable[..., ResourceServer]


@pytest.fixture
def directory() -> Iterator[Path]:
    # pytest's own directories are too deep for a unix socket.
    path = Path(tempfile.mkdtemp(prefix="gs-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def pool() -> Pool:
    return Pool(gpus=simulated_gpus("2xH200"), vgpus_per_gpu=10)


@pytest.fixture
def resource(pool: Pool) -> Resource:
    devices, held = Devices(pool), HeldVgpus()
    held.follow(devices, are_divided=True)
    return Resource(
        name="gpu-share.dev/vgpu",
        devices=devices,
        sharing=Mps("/tmp/nvidia-mps"),
        allocation_policy="pack",
        held=held,
    )


@pytest.fixture
def kubelet(directory: Path) -> Iterator[SimulatedKubelet]:
    kubelet = SimulatedKubelet(directory, random=Random(1))  # noqa: S311 - the same devices in every run
    yield kubelet
    kubelet.stop()


@pytest.fixture
def start_plugin(directory: Path, caplog: pytest.LogCaptureFixture) -> Iterator[StartPlugin]:
    caplog.set_level(logging.INFO)
    with ExitStack() as stack:

        def start(resource: Resource, clock: Callable[[], float] = monotonic) -> ResourceServer:
            server = ResourceServer(resource, directory, clock=clock)
            thread = Thread(target=server.run)
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.stop)
            return server

        yield start


@pytest.fixture
def registered(kubelet: SimulatedKubelet, start_plugin: StartPlugin, resource: Resource) -> SimulatedKubelet:
    """Give a kubelet that a plugin with 2 GPUs of 10 vGPUs has registered with."""
    kubelet.start()
    start_plugin(resource)
    kubelet.wait_for(resource.name)
    return kubelet


@pytest.fixture
def start(directory: Path, tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:

        def start(*arguments: str, before: tuple[str, ...] = (), **variables: str) -> Plugin:
            directories = ("--kubelet-dir", str(directory), "--state-dir", str(tmp_path), "--lib-dir", str(tmp_path))
            plugins = ("--kubelet-plugins-dir", str(tmp_path / "plugins"))
            cdi = ("--cdi-dir", str(tmp_path / "cdi"), "--cdi-static-dir", str(tmp_path / "etc-cdi"))
            toolkit = ("--toolkit-config", str(tmp_path / "config.toml"))
            kubelet = ("--pod-resources", str(directory / "pod-resources.sock"))
            plugin = Plugin(*directories, *cdi, *toolkit, *kubelet, *plugins, *arguments, before=before, **variables)
            stack.callback(plugin.close)
            return plugin

        yield start
