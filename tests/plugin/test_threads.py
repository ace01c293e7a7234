from pathlib import Path
from threading import Event, current_thread

import pytest

from plugin.device_plugin.service import Resource
from plugin.errors import SocketError
from plugin.simulated.kubelet import SimulatedKubelet
from plugin.threads import Servers, Threads


def test_all_threads_are_ended_and_joined() -> None:
    threads = Threads(on_death=lambda: None)
    ended = Event()
    seen = list[str]()

    def run() -> None:
        ended.wait()
        seen.append(current_thread().name)

    threads.start("one", run, stop=ended.set)
    assert threads.end()
    assert (seen, threads.died) == (["one"], False)


def test_a_thread_that_dies_says_so(caplog: pytest.LogCaptureFixture) -> None:
    told = Event()
    threads = Threads(on_death=told.set)

    def die() -> None:
        raise RuntimeError("died")

    threads.start("one", die, stop=lambda: None)
    assert told.wait(10)
    assert threads.end()
    assert threads.died
    assert caplog.records[0].message == "the plugin failed"


def test_a_thread_that_hangs_is_left_behind_and_said() -> None:
    threads = Threads(on_death=lambda: None)
    release = Event()

    def hang() -> None:
        release.wait()

    threads.start("one", hang, stop=lambda: None, may_hang=True)
    assert not threads.end()
    release.set()


def test_nothing_is_started_once_it_ends() -> None:
    threads = Threads(on_death=lambda: None)
    assert threads.end()
    threads.start("late", lambda: pytest.fail("it ran"), stop=lambda: pytest.fail("it was stopped"))


def test_resources_are_served_from_the_start_on_and_at_once_later(folder: Path, resource: Resource) -> None:
    threads = Threads(on_death=lambda: None)
    servers = Servers(folder, threads)
    with SimulatedKubelet(folder) as kubelet:
        servers.add(resource)
        assert [path.name for path in folder.iterdir()] == ["kubelet.sock"]
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
    assert list(folder.iterdir()) == []


def test_a_socket_whose_path_is_too_long_is_refused(folder: Path, resource: Resource) -> None:
    servers = Servers(folder / ("x" * 100), Threads(on_death=lambda: None))
    with pytest.raises(SocketError):
        servers.add(resource)
