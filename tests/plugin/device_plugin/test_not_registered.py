"""What the server of a resource says of a kubelet that does not come to know it, by a clock that a test sets."""

from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from plugin.device_plugin.registration import ResourceServer
from plugin.device_plugin.servers import Servers
from plugin.device_plugin.service import Resource
from plugin.device_plugin.v1beta1 import api_pb2
from plugin.lifecycle import Threads
from plugin.simulated.kubelet import SimulatedKubelet
from tests.plugin.conftest import StartPlugin
from tests.plugin.device_plugin.hanging_kubelet import HangingKubelet
from tests.plugin.waiting import wait_until

NAME = "gpu-share.dev/vgpu"
DIAL = "failed to dial device plugin with socketPath: permission denied"
Serve = Callable[[], ResourceServer]


class Clock:
    now_seconds = 1000.0

    def passes(self, seconds: float) -> bool:
        self.now_seconds += seconds
        return True


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def serve(start_plugin: StartPlugin, resource: Resource, clock: Clock) -> Serve:
    return lambda: start_plugin(resource, clock=lambda: clock.now_seconds)


class Kubelet(SimulatedKubelet):
    """A kubelet that rejects for as long as it is to."""

    rejects = True

    def Register(self, request: api_pb2.RegisterRequest, context: grpc.ServicerContext) -> api_pb2.Empty:  # noqa: N802
        if self.rejects:
            context.abort(grpc.StatusCode.UNKNOWN, DIAL)
        return super().Register(request, context)


def why(server: ResourceServer) -> str:
    told = server.not_registered
    assert told is None or told.resource == NAME
    return told.why if told else ""


def warnings(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(one.message, vars(one)["reason"]) for one in caplog.records if one.levelname == "WARNING"]


def test_a_kubelet_that_cannot_dial_back_is_told_with_its_words_and_what_to_do_until_it_can(
    directory: Path, serve: Serve, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with Kubelet(directory) as kubelet:
        server = serve()
        wait_until(lambda: "not registered, trying again" in caplog.messages)
        clock.passes(29)
        assert (why(server), warnings(caplog)) == ("", [])
        clock.passes(1)
        wait_until(lambda: why(server).startswith(f"the call to the kubelet failed: UNKNOWN: {DIAL}: see the kubelet"))
        assert f"SELinux or AppArmor keeps it from connecting to the plugin's socket {directory}/" in why(server)
        wait_until(lambda: warnings(caplog) == [("not registered for half a minute", why(server))])
        kubelet.rejects = False
        kubelet.wait_for(NAME)
        wait_until(lambda: clock.passes(0.1) and why(server) == "")
    assert len(warnings(caplog)) == 1


def test_a_kubelet_that_is_not_there_is_waited_for_and_told_as_such(
    directory: Path, serve: Serve, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve()
    wait_until(lambda: "waiting for the kubelet" in caplog.messages)
    clock.passes(30)
    wait_until(lambda: bool(warnings(caplog)))
    assert why(server).startswith(f"waiting for the kubelet: {directory}/kubelet.sock does not exist: see whether")
    with SimulatedKubelet(directory):
        wait_until(lambda: clock.passes(0.1) and why(server) == "")


def test_a_kubelet_that_never_answers_is_told_of_while_it_is_asked(directory: Path, serve: Serve, clock: Clock) -> None:
    with HangingKubelet(directory) as kubelet:
        server = serve()
        try:
            assert kubelet.called.wait(5)
            assert why(server) == ""
            clock.passes(30)
            assert why(server) == "the kubelet has not answered yet"
        finally:
            server.stop()
            kubelet.release.set()


def test_a_kubelet_that_agrees_and_never_asks_for_the_devices_is_told_of(
    directory: Path, serve: Serve, clock: Clock
) -> None:
    class Forgetful(SimulatedKubelet):
        def Register(self, request: api_pb2.RegisterRequest, context: grpc.ServicerContext) -> api_pb2.Empty:  # noqa: ARG002, N802
            return api_pb2.Empty()

    with Forgetful(directory):
        server = serve()
        clock.passes(30)
        wait_until(lambda: why(server) not in ("", "the kubelet has not answered yet"))
        assert why(server).startswith("the kubelet has registered it, and does not ask for its devices")


def test_a_kubelet_that_restarts_is_no_alarm(
    directory: Path, serve: Serve, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with SimulatedKubelet(directory) as kubelet:
        server = serve()
        kubelet.wait_for(NAME)
        clock.passes(100)
        wait_until(lambda: clock.passes(0.1) and why(server) == "")
        before = warnings(caplog)
        kubelet.restart()
        clock.passes(29)
        kubelet.wait_for(NAME)
        assert why(server) == ""
    assert warnings(caplog) == before


def test_of_all_resources_of_a_node_those_are_named_that_the_kubelet_does_not_know(
    directory: Path, resource: Resource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plugin.device_plugin.standing.LASTS_SECONDS", 0.5)
    monkeypatch.setattr("plugin.device_plugin.standing._STEADY_SECONDS", 0.5)
    threads = Threads(on_death=lambda: None)
    servers = Servers(directory, threads)
    servers.add(resource)
    assert servers.not_registered() == ()  # nobody serves yet
    with Kubelet(directory) as kubelet:
        servers.start()
        try:
            wait_until(lambda: [one.resource for one in servers.not_registered()] == [NAME])
            kubelet.rejects = False
            wait_until(lambda: servers.not_registered() == ())
        finally:
            threads.end()
