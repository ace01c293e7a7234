from pathlib import Path
from threading import Thread

import pytest

from plugin.device_plugin.servers import Servers
from plugin.device_plugin.service import Resource
from plugin.errors import SocketError, ThreadsError
from plugin.lifecycle import Threads
from plugin.simulated.kubelet import SimulatedKubelet
from tests.plugin.waiting import wait_until


def test_resources_are_served_from_the_start_on_and_at_once_later(directory: Path, resource: Resource) -> None:
    threads = Threads(on_death=lambda: None)
    servers = Servers(directory, threads)
    with SimulatedKubelet(directory) as kubelet:
        servers.add(resource)
        assert [path.name for path in directory.iterdir()] == ["kubelet.sock"]
        servers.start()
        kubelet.wait_for(resource.name)
        other = Resource(
            name="gpu-share.dev/another",
            devices=resource.devices,
            sharing=resource.sharing,
            allocation_policy="pack",
        )
        servers.add(other)
        kubelet.wait_for(other.name)
        assert threads.end()
    assert list(directory.iterdir()) == []


def test_a_resource_that_got_no_thread_is_not_said_to_be_unregistered_once_another_try_has_served_it(
    directory: Path, resource: Resource, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LASTS_SECONDS", "_STEADY_SECONDS"):
        monkeypatch.setattr(f"plugin.device_plugin.standing.{name}", 0.0)
    threads = Threads(on_death=lambda: None)
    servers = Servers(directory, threads)
    servers.start()

    def none(thread: Thread) -> Thread:
        raise ThreadsError(thread.name)

    with SimulatedKubelet(directory) as kubelet:
        with monkeypatch.context() as patched:
            patched.setattr("plugin.lifecycle.started", none)
            with pytest.raises(ThreadsError):
                servers.add(resource)
        servers.add(resource)
        kubelet.wait_for(resource.name)
        wait_until(lambda: servers.not_registered() == ())
        assert threads.end()


def test_a_socket_whose_path_is_too_long_is_rejected(directory: Path, resource: Resource) -> None:
    servers = Servers(directory / ("x" * 100), Threads(on_death=lambda: None))
    with pytest.raises(SocketError):
        servers.add(resource)
