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
    """The cgroups of a node, in a directory."""

    def __init__(self, directory: Path, layout: str, *, version: int) -> None:
        self._all, self._pod, self._dash = LAYOUTS[layout]
        self._hierarchies = [directory] if version == 2 else [directory / one for one in ("memory", "systemd")]
        self._version = version
        self.pods = PodCgroups(directory, own_uid=OWN)

    def has(self, uid: str, *, processes: bool) -> list[Path]:
        """Give a pod a cgroup, with one of a container that has a process or none."""
        found = []
        for hierarchy in self._hierarchies:
            pod = hierarchy / self._all / self._pod.format(uid.replace("-", self._dash))
            container = pod / f"cri-containerd-{'a' * 64}.scope"
            container.mkdir(parents=True, exist_ok=True)
            for cgroup in (pod, container):
                is_in = processes and cgroup is container
                (cgroup / "cgroup.procs").write_text("42\n" * is_in)
                if self._version == 2:
                    (cgroup / "cgroup.events").write_text(f"populated {int(processes)}\nfrozen 0\n")
            found.append(pod)
        return found


@pytest.fixture(params=[(layout, version) for layout in LAYOUTS for version in (1, 2)], ids=str)
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Tree:
    layout, version = request.param
    made = Tree(tmp_path, layout, version=version)
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


def test_a_process_in_one_hierarchy_alone_is_one(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "cgroupfs", version=1)
    tree.has(OWN, processes=True)
    first, second = tree.has(OTHER, processes=False)
    for one in (first, second):
        deep = one / "made/by/the/container/itself/kubepods/and/deeper"
        deep.mkdir(parents=True)
        (deep / "cgroup.procs").write_text("42\n")
        assert tree.pods.has_processes(OTHER) is True
        (deep / "cgroup.procs").write_text("")


def test_where_the_own_pod_is_not_seen_nobody_knows_anything(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "systemd", version=2)
    tree.has(OTHER, processes=True)
    assert tree.pods.has_processes(OTHER) is None
    tree.has(OWN, processes=False)  # the runtime has its containers elsewhere
    assert tree.pods.has_processes(OTHER) is None
    assert PodCgroups(tmp_path / "none", own_uid=OWN).has_processes(OTHER) is None
    assert PodCgroups(tmp_path, own_uid="").has_processes(OTHER) is None


def test_another_driver_of_the_kubelet_is_noticed(tmp_path: Path) -> None:
    before = Tree(tmp_path, "cgroupfs", version=2)
    (own,) = before.has(OWN, processes=True)
    before.has(OTHER, processes=False)
    assert before.pods.has_processes(OTHER) is False
    after = Tree(tmp_path, "systemd", version=2)
    own.rename(tmp_path / "gone")
    assert before.pods.has_processes(OTHER) is None
    after.has(OWN, processes=True)
    after.has(OTHER, processes=True)
    assert before.pods.has_processes(OTHER) is True


@pytest.mark.parametrize("uid", ["", "..", "../../../etc", "A" + OTHER[1:], f"{OTHER}\n", "a" * 300, "\0", "*"])
def test_what_is_no_uid_is_looked_for_nowhere(uid: str, tmp_path: Path) -> None:
    tree = Tree(tmp_path, "cgroupfs", version=2)
    tree.has(OWN, processes=True)
    assert tree.pods.has_processes(uid) is None


def test_what_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "cgroupfs", version=2)
    tree.has(OWN, processes=True)
    (pod,) = tree.has(OTHER, processes=True)
    (pod / "cgroup.events").unlink()
    (pod / "cgroup.events").mkdir()
    assert tree.pods.has_processes(OTHER) is None
