import socket
from functools import partial
from pathlib import Path
from threading import Event

import grpc
import pytest

from plugin.device_plugin.pace import Pace
from plugin.device_plugin.registration import register
from plugin.device_plugin.service import Resource
from plugin.device_plugin.session import Session
from plugin.device_plugin.v1beta1 import api_pb2, api_pb2_grpc
from plugin.errors import SocketError
from plugin.simulated.kubelet import SimulatedKubelet
from plugin.sockets import SocketIdentity, answers, identify, socket_path, target
from tests.plugin.waiting import wait_until

NAME = "gpu-share.dev/vgpu"
SOCKET = "gpu-share.dev_vgpu.sock"


def test_the_end_leaves_a_successors_socket_alone(resource: Resource, directory: Path) -> None:
    ours, theirs = (Session(resource, directory / SOCKET, wake=Event()) for _ in range(2))
    with theirs:
        ours.__enter__()
        theirs_again = Session(resource, directory / SOCKET, wake=Event())
        with theirs_again:
            ours.__exit__(None, None, None)
            assert theirs_again.owns_socket
            assert answers(directory / SOCKET)
    assert list(directory.iterdir()) == []


def test_with_two_plugins_at_once_the_end_of_the_first_stream_disconnects_the_second(
    kubelet: SimulatedKubelet, resource: Resource, directory: Path
) -> None:
    kubelet.start()
    with Session(resource, directory / "b.sock", wake=Event()) as second:
        with Session(resource, directory / "a.sock", wake=Event()):
            assert call_register(directory, "a.sock") is None
            assert call_register(directory, "b.sock") is None
            wait_until(lambda: second.is_watched)
        wait_until(lambda: bool(second.over_because))
        assert kubelet.allocatable(NAME) == 0


@pytest.mark.parametrize(
    ("version", "name", "endpoint", "sentence"),
    [
        ("v1alpha", NAME, SOCKET, "version v1alpha is not supported"),
        ("v1beta1", "vgpu", SOCKET, "the resource name vgpu is invalid"),
        ("v1beta1", "kubernetes.io/vgpu", SOCKET, "is invalid"),
        ("v1beta1", "requests.a.b/vgpu", SOCKET, "is invalid"),
    ],
)
def test_the_simulated_kubelet_is_as_strict_as_the_real_one(
    kubelet: SimulatedKubelet, version: str, name: str, endpoint: str, sentence: str
) -> None:
    kubelet.start()
    request = api_pb2.RegisterRequest(version=version, endpoint=endpoint, resource_name=name)
    with grpc.insecure_channel(target(kubelet.socket)) as channel, pytest.raises(grpc.RpcError) as rejection:
        api_pb2_grpc.RegistrationStub(channel).Register(request)
    assert sentence in (rejection.value.details() or "")


def test_a_path_that_is_no_uri_is_served_all_the_same(directory: Path, resource: Resource) -> None:
    strange = directory / "a b%20#?ü"
    strange.mkdir()
    with SimulatedKubelet(strange) as kubelet, Session(resource, strange / SOCKET, wake=Event()):
        assert call_register(strange, SOCKET) is None
        kubelet.wait_for(NAME)


def test_a_path_too_long_for_a_socket_is_rejected_with_its_length() -> None:
    with pytest.raises(SocketError, match="at most 107 bytes, this has 108: choose a shorter --kubelet-dir"):
        socket_path(Path("/" + "d" * 83), NAME)
    assert socket_path(Path("/" + "d" * 82), NAME).name == SOCKET


def test_the_socket_of_each_resource_that_policies_may_name_fits_into_the_kubelets_directory() -> None:
    longest = [f"{'a' * 60}.com/{'b' * (119 - 64 - len(end))}{end}" for end in ("x", "y")]
    kubelet_dir = Path("/var/lib/kubelet/device-plugins")
    assert len({socket_path(kubelet_dir, one).name for one in longest}) == 2


def test_two_resources_never_share_a_socket() -> None:
    assert socket_path(Path("/"), "a.b/c-d") != socket_path(Path("/"), "a.b-c/d")


def test_an_identity_changes_with_the_socket_and_not_with_its_labels(directory: Path) -> None:
    path = directory / "some.sock"
    identities = set()
    for _ in range(3):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            identities.add(identify(path))
            path.chmod(0o644)
            identities.add(identify(path))
        wait_until(partial(file_system_time_moved_on, path))
        path.unlink()
    assert len(identities) == 3
    assert identify(path) is None


def file_system_time_moved_on(since: Path) -> bool:
    probe = since.with_name("probe")
    probe.touch()
    return probe.lstat().st_mtime_ns > since.lstat().st_mtime_ns


def test_the_pace_is_slower_with_each_rejection_and_fresh_with_a_new_kubelet() -> None:
    now = 100.0
    pace = Pace(lambda: now)
    old, new = SocketIdentity(1, 1, 1), SocketIdentity(1, 1, 2)
    waits = []
    for _ in range(6):
        assert pace.allows(old)
        pace.rejected_by(old)
        assert not pace.allows(old)
        assert pace.allows(new)
        wait = 0.0
        while not pace.allows(old):
            wait += 0.5
            now += 0.5
        waits.append(wait)
    assert waits == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    pace.rejected_by(new)
    now += 0.5
    assert pace.allows(new)


def call_register(directory: Path, endpoint: str) -> str | None:
    return register(
        directory / "kubelet.sock", endpoint=endpoint, resource_name=NAME, wake=Event(), stopping=lambda: False
    )
