"""In which container a process is, by what kubelets and runtimes call the cgroups of pods."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin.usage.cgroups import UNTOLD, ContainerId, container_id, container_of
from tests.plugin.usage.tasks import ENDED, RUNS, has_thread

UID = "3f1c7f6e-1111-4222-8333-944444444444"
UNDER = UID.replace("-", "_")
OTHER_UID = "00000000-1111-4222-8333-944444444444"
ID, OTHER = "a1" * 32, "b2" * 32

SHAPES = {
    "containerd, systemd": f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDER}.slice/"
    f"cri-containerd-{ID}.scope",
    "containerd, systemd, guaranteed": f"/kubepods.slice/kubepods-pod{UNDER}.slice/cri-containerd-{ID}.scope",
    "containerd, cgroupfs": f"/kubepods/besteffort/pod{UID}/{ID}",
    "containerd without systemd under a kubelet with it": f"/system.slice/containerd.service/"
    f"kubepods-burstable-pod{UNDER}.slice:cri-containerd:{ID}",
    "CRI-O, systemd": f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDER}.slice/crio-{ID}.scope",
    "CRI-O with a cgroup of its own below": f"/kubepods.slice/kubepods-pod{UNDER}.slice/crio-{ID}.scope/container",
    "CRI-O, cgroupfs": f"/kubepods/burstable/pod{UID}/crio-{ID}",
    "Docker by cri-dockerd": f"/kubepods.slice/kubepods-pod{UNDER}.slice/docker-{ID}.scope",
    "kind": f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
    f"kubelet-kubepods-burstable-pod{UNDER}.slice/cri-containerd-{ID}.scope",
    "kind in a container": f"/docker/{OTHER}/kubelet/kubepods/burstable/pod{UID}/{ID}",
    "seen from another cgroup namespace": f"/../../kubepods-burstable.slice/kubepods-burstable-pod{UNDER}.slice/"
    f"cri-containerd-{ID}.scope",
    "below a root of the kubelet's": f"/pool1.slice/pool1-Team_a.slice/pool1-Team_a-kubepods.slice/"
    f"pool1-Team_a-kubepods-pod{UNDER}.slice/cri-containerd-{ID}.scope",
    "below a root, by containerd without systemd": f"/system.slice/containerd.service/"
    f"pool1-kubepods-burstable-pod{UNDER}.slice:cri-containerd:{ID}",
    "a static pod": f"/kubepods/burstable/pod{'0f' * 16}/{ID}",
    "a cgroup that the container has made": f"/kubepods/burstable/pod{UID}/{ID}/system.slice/init.scope",
}


@pytest.mark.parametrize("path", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("line", ["0::{}", "4:memory:{}", "1:name=systemd:{}"])
def test_the_container_is_found_in_each_shape_that_a_path_has(path: str, line: str) -> None:
    found = container_id(f"{line.format(path)}\n")
    assert found is not None
    assert found.id == ID
    assert found.pod_uid in (UID, "0f" * 16)


def test_of_cgroups_of_version_1_the_first_line_with_a_pod_counts() -> None:
    text = f"12:rdma:/\n11:pids:/kubepods/burstable/pod{UID}/{ID}\n0::/system.slice/containerd.service\n"
    assert container_id(text) == ContainerId(UID, ID)


def test_a_tenant_that_calls_its_cgroups_like_those_of_another_stays_itself() -> None:
    mine = f"/kubepods.slice/kubepods-pod{UNDER}.slice/cri-containerd-{ID}.scope"
    theirs = f"kubepods.slice/kubepods-pod{OTHER_UID.replace('-', '_')}.slice/cri-containerd-{OTHER}.scope"
    assert container_id(f"0::{mine}/{theirs}\n") == ContainerId(UID, ID)
    assert container_id(f"0::{mine}/kubepods-pod{UNDER}.slice:cri-containerd:{OTHER}\n") == ContainerId(UID, ID)
    assert container_id(f"0::{mine}/0::/kubepods/pod{OTHER_UID}/{OTHER}\n") == ContainerId(UID, ID)


@pytest.mark.parametrize(
    "path",
    [
        f"/kubepods/burstable/pod{UID}",
        f"/kubepods/burstable/pod{UID}/{ID[:63]}",
        f"/kubepods/burstable/pod{UID}/a-runtime-of-tomorrow-{ID}",
        f"/kubepods.slice/kubepods-pod{UNDER}.slice/crio-conmon-{ID}.scope",
        f"/kubepods/a-shape-of-tomorrow/{ID}",
    ],
)
def test_a_process_of_a_pod_whose_container_is_not_recognised_is_not_one_of_the_node(path: str) -> None:
    found = container_id(f"0::{path}\n")
    assert found is not None
    assert found.id == ""


@pytest.mark.parametrize(
    "text", ["", "0::/\n", "0::/user.slice/user-0.slice", f"0::/docker/{ID}", "kubepods", "0:kubepods"]
)
def test_a_process_of_the_node_is_in_no_container_of_a_pod(text: str) -> None:
    assert container_id(text) is None


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    found = container_id(text)
    assert not found or len(found.id) in (0, 64)


def test_a_process_that_has_ended_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        container_of(7, tmp_path)


def test_what_is_longer_than_any_cgroup_is_not_read_whole(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_bytes(b"0::/" + b"\xff" * 1_000_000 + f"/kubepods/pod{UID}/{ID}".encode())
    assert container_of(7, tmp_path) is None


V1 = f"8:pids:/kubepods/burstable/pod{UID}/{ID}\n1:name=systemd:/kubepods/burstable/pod{UID}/{ID}\n"
NOWHERE = "8:pids:/\n1:name=systemd:/\n"
HYBRID = f"{NOWHERE}0::/system.slice/containerd.service\n"


@pytest.mark.parametrize("ended", [NOWHERE, HYBRID])
def test_a_process_is_in_its_container_also_when_its_main_thread_has_ended(tmp_path: Path, ended: str) -> None:
    has_thread(tmp_path, 7, 7, ended, ENDED)
    has_thread(tmp_path, 7, 8, ended, ENDED)
    has_thread(tmp_path, 7, 9, V1, RUNS)
    assert container_of(7, tmp_path) == ContainerId(UID, ID)


@pytest.mark.parametrize("ended", [NOWHERE, HYBRID])
def test_where_the_kernel_does_not_say_any_more_where_a_process_was_it_is_not_one_of_the_node(
    tmp_path: Path, ended: str
) -> None:
    has_thread(tmp_path, 7, 7, ended, ENDED)
    assert container_of(7, tmp_path) == UNTOLD


def test_of_a_process_with_any_number_of_threads_that_have_ended_not_all_are_asked(tmp_path: Path) -> None:
    for thread in range(7, 207):
        has_thread(tmp_path, 7, thread, NOWHERE, ENDED)
    in_order = [int(name) for name in os.listdir(tmp_path / "7" / "task") if name != "7"]  # noqa: PTH208 - its order
    has_thread(tmp_path, 7, in_order[-1], V1, RUNS)
    assert container_of(7, tmp_path) == UNTOLD
    has_thread(tmp_path, 7, in_order[50], V1, RUNS)
    assert container_of(7, tmp_path) == ContainerId(UID, ID)


@pytest.mark.parametrize(
    ("text", "flags"),
    [(HYBRID, RUNS), (NOWHERE, RUNS), ("0::/system.slice/nvidia-persistenced.service\n", ENDED)],
)
def test_a_process_of_the_node_stays_one(tmp_path: Path, text: str, flags: int) -> None:
    has_thread(tmp_path, 7, 7, text, flags)
    assert container_of(7, tmp_path) is None


def test_a_process_of_the_node_stays_one_also_when_its_main_thread_has_ended(tmp_path: Path) -> None:
    has_thread(tmp_path, 7, 7, NOWHERE, ENDED)
    has_thread(tmp_path, 7, 8, "8:pids:/system.slice/a.service\n", RUNS)
    assert container_of(7, tmp_path) is None
