"""Which pods have processes left, by trees of cgroups as kubelets make them."""

from pathlib import Path

import pytest

from plugin.usage.pod_cgroups import PodCgroups

OWN = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
STATIC = "0123456789abcdef0123456789abcdef"
LAYOUTS = {
    "systemd": ("kubepods.slice", "kubepods-burstable.slice/kubepods-burstable-pod{}.slice", "_"),
    "systemd, guaranteed": ("kubepods.slice", "kubepods-pod{}.slice", "_"),
    "cgroupfs": ("kubepods", "besteffort/pod{}", "-"),
    "cgroupfs, guaranteed": ("kubepods", "pod{}", "-"),
    "below another, systemd": (
        "kubelet.slice/kubelet-kubepods.slice",
        "kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod{}.slice",
        "_",
    ),
    "below another, cgroupfs": ("some/where/kubepods", "burstable/pod{}", "-"),
}


class Tree:
    """The cgroups of a node, in a directory: *kind* is v1, v2, or hybrid, which has both."""

    def __init__(self, directory: Path, layout: str, *, kind: str = "v2") -> None:
        self._all, self._pod, self._dash = LAYOUTS[layout]
        self._v2 = {"v1": [], "v2": [directory], "hybrid": [directory / "unified"]}[kind]
        self._v1 = [] if kind == "v2" else [directory / "memory", directory / "pids"]
        self.now_seconds = 0.0
        self.pods = PodCgroups(directory, own_uid=OWN, clock=lambda: self.now_seconds)

    def has(self, uid: str, *, processes: bool) -> list[Path]:
        """Give a pod its cgroups, with processes or none; version 1 names none that are of other PID namespaces."""
        found = []
        for hierarchy in (*self._v1, *self._v2):
            all_pods = hierarchy / self._all
            pod = all_pods / self._pod.format(uid.replace("-", self._dash))
            pod.mkdir(parents=True, exist_ok=True)
            for cgroup in (all_pods, pod):
                self._tells(hierarchy, cgroup, processes=processes)
            found.append(pod)
        return found

    def has_beside(self, uid: str, within: str, *, processes: bool) -> None:
        """Give a container of a pod a cgroup in another, as a runtime with cgroupfs names it below a slice."""
        for hierarchy in (*self._v1, *self._v2):
            name = f"kubepods-burstable-pod{uid.replace('-', '_')}.slice:cri-containerd:{'a' * 64}"
            (hierarchy / within / name).mkdir(parents=True, exist_ok=True)
            self._tells(hierarchy, hierarchy / within / name, processes=processes)

    def _tells(self, hierarchy: Path, cgroup: Path, *, processes: bool) -> None:
        (cgroup / "cgroup.procs").write_text("")
        if hierarchy in self._v2:
            (cgroup / "cgroup.events").write_text(f"populated {int(processes)}\nfrozen 0\n")
        elif hierarchy.name == "pids":
            (cgroup / "pids.current").write_text(f"{int(processes)}\n")


@pytest.fixture(params=[(layout, kind) for layout in LAYOUTS for kind in ("v1", "v2", "hybrid")], ids=str)
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Tree:
    layout, kind = request.param
    made = Tree(tmp_path, layout, kind=kind)
    made.has(OWN, processes=True)
    return made


def test_a_pod_has_processes_as_long_as_its_cgroup_has(tree: Tree) -> None:
    assert tree.pods.has_processes(OTHER) is False
    tree.has(OTHER, processes=True)
    assert tree.pods.has_processes(OTHER) is True
    tree.has(OTHER, processes=False)
    assert tree.pods.has_processes(OTHER) is False
    tree.has(STATIC, processes=True)
    assert tree.pods.has_processes(STATIC) is True


@pytest.mark.parametrize("kind", ["v1", "v2", "hybrid"])
@pytest.mark.parametrize("own", ["as the kubelet's", "as the tenant's"])
@pytest.mark.parametrize("within", ["", "system.slice", "system.slice/k3s.service", "runtime.slice/containerd.service"])
@pytest.mark.parametrize("layout", ["systemd", "below another, systemd"])
def test_a_container_is_found_whose_handler_has_the_driver_cgroupfs_below_a_kubelet_with_systemd(
    tmp_path: Path, kind: str, own: str, within: str, layout: str
) -> None:
    tree = Tree(tmp_path, layout, kind=kind)
    tree.has(OWN, processes=own == "as the kubelet's")
    tree.has(OTHER, processes=False)
    assert tree.pods.has_processes(OTHER) is (False if own == "as the kubelet's" else None)
    if own == "as the tenant's":
        tree.has_beside(OWN, within, processes=True)
        tree.now_seconds += 31
    tree.has_beside(OTHER, within, processes=True)
    assert tree.pods.has_processes(OTHER) is True
    tree.has_beside(OTHER, within, processes=False)
    assert tree.pods.has_processes(OTHER) is False
    tree.has_beside(STATIC, within, processes=True)
    assert tree.pods.has_processes(OTHER) is False
    assert tree.pods.has_processes(STATIC) is True


def test_where_the_own_pod_is_not_seen_nobody_knows_anything(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "systemd")
    tree.has(OTHER, processes=True)
    assert tree.pods.has_processes(OTHER) is None
    tree.now_seconds += 31
    tree.has(OWN, processes=False)  # the runtime has its containers elsewhere
    assert tree.pods.has_processes(OTHER) is None
    assert PodCgroups(tmp_path / "none", own_uid=OWN).has_processes(OTHER) is None
    assert PodCgroups(tmp_path, own_uid="").has_processes(OTHER) is None


def test_another_driver_of_the_kubelet_is_noticed(tmp_path: Path) -> None:
    before = Tree(tmp_path, "cgroupfs")
    (own,) = before.has(OWN, processes=True)
    before.has(OTHER, processes=False)
    assert before.pods.has_processes(OTHER) is False
    after = Tree(tmp_path, "systemd")
    own.rename(tmp_path / "gone")
    before.now_seconds = 31
    assert before.pods.has_processes(OTHER) is None
    after.has(OWN, processes=True)
    after.has(OTHER, processes=True)
    assert before.pods.has_processes(OTHER) is None, "it looks for them again half a minute later"
    before.now_seconds = 62
    assert before.pods.has_processes(OTHER) is True


@pytest.mark.parametrize("uid", ["", "..", "../../../etc", "A" + OTHER[1:], f"{OTHER}\n", "a" * 300, "\0", "*"])
def test_what_is_no_uid_is_looked_for_nowhere(uid: str, tmp_path: Path) -> None:
    tree = Tree(tmp_path, "cgroupfs")
    tree.has(OWN, processes=True)
    assert tree.pods.has_processes(uid) is None


def test_processes_that_were_seen_count_for_a_minute_where_they_cannot_be_seen_now(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "cgroupfs")
    tree.has(OWN, processes=True)
    (pod,) = tree.has(OTHER, processes=True)
    assert tree.pods.has_processes(OTHER) is True
    (pod / "cgroup.events").unlink()
    (pod / "cgroup.events").mkdir()
    tree.now_seconds = 59
    assert tree.pods.has_processes(OTHER) is True
    tree.now_seconds = 61
    assert tree.pods.has_processes(OTHER) is None


def test_what_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "cgroupfs", kind="hybrid")
    tree.has(OWN, processes=True)
    _, by_pids, unified = tree.has(OTHER, processes=False)
    (by_pids / "pids.current").write_text("many\n")
    assert tree.pods.has_processes(OTHER) is None
    (by_pids / "pids.current").write_text("0\n")
    assert tree.pods.has_processes(OTHER) is False
    (unified / "cgroup.events").unlink()
    (unified / "cgroup.events").mkdir()
    assert tree.pods.has_processes(OTHER) is None
