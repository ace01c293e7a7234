from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.device_plugin.holder import ENDED_OR_NOT, Holder
from plugin.device_plugin.holdings import Holdings
from plugin.device_plugin.service import Resource
from plugin.errors import TenantsError
from plugin.pod_resources.tenants import read_tenants
from plugin.simulated.device_manager import Request
from plugin.simulated.kubelet import SimulatedKubelet
from tests.plugin.conftest import StartPlugin
from tests.plugin.device_plugin.asked_kubelet import A, B, C, Kubelet, nothing


@pytest.fixture
def node(tmp_path: Path) -> Kubelet:
    return Kubelet(tmp_path)


def test_nothing_is_known_before_the_kubelet_has_said_it(node: Kubelet) -> None:
    node.says = None
    with pytest.raises(TenantsError):
        node.holdings.refresh()
    assert not node.holdings.known
    node.says = {}
    node.holdings.refresh()
    assert node.holdings.known


def test_containers_that_the_kubelet_names_hold_their_vgpus_from_then_on(node: Kubelet) -> None:
    node.says = {"team/a/main": (A, B), "team/b/main": (C,)}
    assert node.after(1) == {A: "team/a/main", B: "team/a/main", C: "team/b/main"}
    node.after(1)
    assert node.holdings.held()[A] == Holder(container="team/a/main", since_seconds=101)


def test_what_is_allocated_is_held_at_once_and_has_a_name_when_the_kubelet_says_it(node: Kubelet) -> None:
    node.after(1)
    node.holdings.allocated({A: "GPU-1"})
    assert node.held() == {A: None}
    node.says = {"team/a/main": (A,)}
    assert node.after(1) == {A: "team/a/main"}
    assert node.holdings.held()[A].since_seconds == 101


def test_what_ended_is_free_when_the_kubelet_names_it_no_more(node: Kubelet) -> None:
    node.says = {"team/a/main": (A,), "team/b/main": (C,)}
    node.after(1)
    node.says = {"team/b/main": (C,)}
    assert node.after(1) == {C: "team/b/main"}


def test_what_the_kubelet_never_named_stays_held_as_that_of_an_init_container(node: Kubelet) -> None:
    node.holdings.allocated({A: "GPU-1"})
    assert node.after(1000) == {A: None}


def test_what_the_kubelet_has_for_a_new_container_is_free(node: Kubelet) -> None:
    node.says = {"team/b/main": (C,)}
    node.after(1)
    node.holdings.allocated({A: "GPU-1", B: "GPU-2"})
    assert node.holdings.free([A, A, B, "GPU-3::1"])  # nothing keeps a caller from naming one twice
    assert node.held() == {C: "team/b/main"}


def test_a_vgpu_that_is_allocated_while_the_kubelet_is_asked_is_not_free_by_an_answer_from_before(
    node: Kubelet,
) -> None:
    node.says = {"team/old/main": (A,)}
    node.after(1)
    node.says = {}

    def allocate() -> None:
        node.now += 0.1
        node.holdings.allocated({A: "GPU-1"})

    node.during = allocate
    assert node.after(1) == {A: None}


def test_an_answer_from_before_does_not_name_the_last_holder_as_the_new_one(node: Kubelet) -> None:
    node.says = {"team/old/main": (A,)}
    node.after(1)

    def allocate() -> None:
        node.now += 0.1
        node.holdings.allocated({A: "GPU-1"})

    node.during = allocate
    assert node.after(1) == {A: None}
    node.during = nothing
    node.says = {"team/new/main": (A,)}
    assert node.after(1) == {A: "team/new/main"}


def test_an_answer_from_before_names_no_holder_of_what_the_kubelet_has_for_a_new_container(node: Kubelet) -> None:
    node.holdings.allocated({A: "GPU-2"}, resource="gpu-share.dev/vgpu")
    node.says = {"team/old/main": (A, B)}
    node.after(1)

    def offer() -> None:
        node.holdings.free([A, B], resource="gpu-share.dev/vgpu")

    node.during = offer
    assert node.after(1) == {}
    node.during = nothing
    node.says = {"team/new/main": (A,)}
    assert node.after(1) == {A: "team/new/main"}


def test_what_went_to_another_container_unseen_is_held_since_it_was_first_seen_there(node: Kubelet) -> None:
    node.says = {"team/a/main": (A,)}
    node.after(1)
    node.says = {"team/b/main": (A,)}
    node.after(5)
    assert node.holdings.held() == {A: Holder(container="team/b/main", since_seconds=106)}


def test_what_a_pod_gets_of_an_init_container_that_has_ended_does_not_end_with_the_pod_of_that(node: Kubelet) -> None:
    node.holdings.allocated({A: "GPU-1", B: "GPU-1", C: "GPU-2"})
    node.holdings.allocated({A: "GPU-1"})
    node.says = {"team/before/main": (A,)}
    assert node.after(1) == {A: "team/before/main", B: None, C: None}
    node.says = {}
    node.holdings.allocated({B: "GPU-1"})  # of an init container, before it was seen that the pod has ended
    assert node.after(1) == {B: None}


def test_what_two_pods_get_of_an_init_container_that_has_ended_does_not_end_with_one_of_them(node: Kubelet) -> None:
    node.holdings.allocated({A: "GPU-1", B: "GPU-1"})
    node.holdings.allocated({A: "GPU-1"})
    node.holdings.allocated({C: "GPU-2"})
    node.holdings.allocated({B: "GPU-1"})  # of an init container of a third pod
    node.says = {"team/one/main": (A,), "team/two/main": (C,)}
    assert node.after(1) == {A: "team/one/main", B: None, C: "team/two/main"}
    del node.says["team/one/main"]
    assert node.after(1) == {B: None, C: "team/two/main"}


def test_a_kubelet_that_does_not_answer_leaves_what_is_known(node: Kubelet) -> None:
    node.says = {"team/a/main": (A,)}
    node.after(1)
    node.says = None
    with pytest.raises(TenantsError):
        node.holdings.refresh()
    assert node.held() == {A: "team/a/main"}


@pytest.mark.parametrize("is_noticed", [True, False])  # by another thread, which registers with it
def test_the_list_of_a_kubelet_that_starts_while_another_is_asked_ends_nothing(
    node: Kubelet, *, is_noticed: bool
) -> None:
    def restart() -> None:
        node.restart()
        if is_noticed:
            node.holdings.notice_kubelet()

    node.says = {"team/a/main": (A,)}
    node.after(1)
    node.says, node.during = {"team/b/main": (B,)}, restart
    with pytest.raises(TenantsError):
        node.holdings.refresh()
    assert node.held() == {A: ENDED_OR_NOT if is_noticed else "team/a/main"}
    node.during = nothing
    assert node.after(1) == {A: ENDED_OR_NOT, B: "team/b/main"}


def test_a_kubelet_that_has_just_started_is_believed_what_is_held_and_not_yet_what_is_free(node: Kubelet) -> None:
    node.says = {"team/a/main": (A,)}
    node.after(1)
    node.restart()
    node.says = {}
    assert node.after(1) == {A: ENDED_OR_NOT}
    node.says = {"team/b/main": (C,)}
    assert node.after(28) == {A: ENDED_OR_NOT, C: "team/b/main"}
    assert node.after(29) == {A: ENDED_OR_NOT, C: "team/b/main"}, "its list has grown"
    assert node.after(2) == {C: "team/b/main"}


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["start", "end", "ask"]), st.integers(0, 5), st.sampled_from([A, B, C])), max_size=40
    )
)
def test_whatever_happens_no_vgpu_of_a_running_container_is_free_and_after_an_answer_no_other_is_held(
    steps: list[tuple[str, int, str]],
) -> None:
    running: dict[str, str] = {}  # container by vGPU
    now = 0.0
    holdings = Holdings(
        lambda: tuple(Kubelet._tenant(name, (text,)) for text, name in running.items()),
        kubelet=Path("/nowhere"),
        clock=lambda: now,
    )
    for step, pod, text in steps:
        now += 0.1
        if step == "start" and text not in running:
            holdings.free([text])
            holdings.allocated({text: "GPU-1"})
            running[text] = f"team/{pod}/main"
        elif step == "end":
            running.pop(text, None)
        else:
            holdings.refresh()
            assert running.items() <= {k: one.container for k, one in holdings.held().items()}.items()
        assert running.keys() <= holdings.held().keys()


def test_a_kubelet_is_asked_over_its_socket(directory: Path, start_plugin: StartPlugin, resource: Resource) -> None:
    socket = directory / "pod-resources.sock"
    with SimulatedKubelet(directory, pod_resources=socket) as kubelet:
        start_plugin(resource)
        kubelet.wait_for(resource.name)
        received = kubelet.allocate(Request(pod="team/a", container="main", resource=resource.name, count=2))
        holdings = Holdings(lambda: read_tenants(socket, [resource.name]), kubelet=socket)
        holdings.refresh()
        held = {text: one.container for text, one in holdings.held().items()}
    assert held == dict.fromkeys(received.device_ids, "team/a/main")
