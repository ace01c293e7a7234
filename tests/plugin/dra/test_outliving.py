"""What a claim gave to a pod that was deleted by force goes to nobody as long as processes of that pod are left."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from time import monotonic

import pytest

from plugin.dra.checkpoint import Checkpoint, HeldBack, Prepared, claimed_gpus, write_checkpoint
from plugin.dra.lasting import LOOK_AGAIN_SECONDS
from plugin.dra.preparations import Preparations
from plugin.errors import ClaimError
from plugin.pod_resources.occupancy import Occupant, read_occupancy
from plugin.simulated.api_server import Object
from plugin.simulated.kubelet import SimulatedKubelet
from plugin.state_files import boot_id
from tests.plugin.dra.node import DraNode, share
from tests.plugin.dra.prepared import device, made, prepare
from tests.plugin.usage.test_pod_cgroups import OWN, Tree
from tests.plugin.waiting import wait_until


class Node:
    """Preparations of a node of which it is seen which pods have processes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.now_seconds = 100.0
        self.left: dict[str, bool | None] = {}
        self.on = self.start()

    def start(self) -> Preparations:
        self.on = made(self.directory, clock=lambda: self.now_seconds, has_processes=self.left.get)
        return self.on


@pytest.fixture
def here(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.mark.parametrize("seconds", [0, 9, 11, 3600])
def test_what_is_held_back_is_free_once_no_process_is_left_and_not_before(here: Node, seconds: float) -> None:
    here.left["old"] = True
    prepare(here.on, "old", device(900, "GPU-0"))
    here.on.unprepare("old", hold_seconds=10)
    here.now_seconds += seconds
    for on in (here.on, here.start()):
        with pytest.raises(ClaimError, match=r"containers still run of ns/claim-old .* deleted by force"):
            prepare(on, "new", device(900, "GPU-0"))
        assert on.gpus() == {"GPU-0"}
        assert [one.pod for one in on.still_used(())] == ["pod-old"]
        prepare(on, "beside", device(100, "GPU-0"))
    here.left["old"] = False
    here.now_seconds += LOOK_AGAIN_SECONDS
    prepare(here.on, "new", device(900, "GPU-0"))
    assert not here.on.still_used(())


def test_where_it_is_not_seen_any_more_the_time_counts(here: Node) -> None:
    here.left["old"] = True
    prepare(here.on, "old", device(900, "GPU-0"))
    here.on.unprepare("old", hold_seconds=10)
    here.left["old"] = None
    here.now_seconds += 9
    with pytest.raises(ClaimError):
        prepare(here.on, "new", device(900, "GPU-0"))
    here.now_seconds += 2
    prepare(here.on, "new", device(900, "GPU-0"))


def test_who_waits_gets_it_when_the_last_process_has_ended(tmp_path: Path) -> None:
    asked = list[str]()

    def has_processes(pod_uid: str) -> bool:
        asked.append(pod_uid)
        return len(asked) < 5

    on = made(tmp_path, has_processes=has_processes)
    prepare(on, "old", device(900, "GPU-0"))
    on.unprepare("old", hold_seconds=10)
    prepare(on, "new", device(900, "GPU-0"), wait_seconds=30)


def test_however_many_wait_the_processes_of_a_pod_are_looked_at_once_in_a_moment(tmp_path: Path) -> None:
    asked = Counter[str]()
    began_seconds = monotonic()

    def has_processes(pod_uid: str) -> bool:
        asked[pod_uid] += 1
        return True

    def wait(number: int) -> None:
        with pytest.raises(ClaimError):
            prepare(on, f"new{number}", device(1000, "GPU-0"), wait_seconds=1.0)

    on = made(tmp_path, has_processes=has_processes)
    for uid in ("a", "b"):
        prepare(on, uid, device(400, "GPU-0"))
        on.unprepare(uid, hold_seconds=10)
    with ThreadPoolExecutor(max_workers=20) as pool:
        list(pool.map(wait, range(20)))
    moments = (monotonic() - began_seconds) / LOOK_AGAIN_SECONDS
    assert 1 < max(asked.values()) <= moments + 5


def test_nobody_asks_again_about_a_pod_that_has_ended(here: Node) -> None:
    asked = list[str]()

    def has_processes(pod_uid: str) -> bool:
        asked.append(pod_uid)
        return False

    here.on = made(here.directory, clock=lambda: here.now_seconds, has_processes=has_processes)
    prepare(here.on, "old", device(900, "GPU-0"))
    here.on.unprepare("old", hold_seconds=10)
    for _ in range(10):
        here.now_seconds += 60
        here.on.outlived_gpus()
        assert (here.on.gpus(), here.on.kept(also_back=True)) == (frozenset(), {})
    assert len(asked) == 1


def test_a_claim_that_is_taken_back_twice_is_held_back_once(here: Node) -> None:
    here.left["old"] = True
    for _ in range(2):
        prepare(here.on, "old", device(400, "GPU-0"))
        here.on.unprepare("old", hold_seconds=10)
    here.now_seconds += 5
    assert here.on.outlived_gpus() == {"GPU-0": (Fraction(2, 5), Fraction(3, 5))}
    assert here.on.kept() == {}
    assert {*here.on.kept(also_back=True)} == {device(400, "GPU-0").name}


def test_without_a_driver_its_gpu_is_claimed_still(tmp_path: Path) -> None:
    prepared = Prepared(namespace="ns", name="c", boot_id="boot", devices=(device(900, "GPU-0"),), pod_uid="old")
    write_checkpoint(tmp_path, Checkpoint(held_back=(HeldBack(until_seconds=1, uid="u", prepared=prepared),)))
    for left in (True, False):
        held = claimed_gpus(tmp_path, boot_id="boot", has_processes={"old": left}.get, clock=lambda: 100)
        assert held == {"GPU-0"} if left else not held


def occupants(node: DraNode) -> list[Occupant]:
    found = read_occupancy(node.directory / "state", boot_id=boot_id())
    return [one for gpu in found.gpus.values() for one in gpu.occupants] if found else []


def outlived(node: DraNode) -> list[tuple[int, int | None]]:
    """Say of each GPU how much processes use that outlive their pod, and how much is free."""
    found = read_occupancy(node.directory / "state", boot_id=boot_id())
    return [(gpu.outlived, gpu.free) for gpu in found.gpus.values()] if found else []


def pod_of(claim: Object) -> str:
    return str(claim["metadata"]["ownerReferences"][0]["uid"])


@pytest.mark.exhaustive
def test_the_next_pod_starts_once_the_processes_have_ended_and_all_can_see_why_it_waits(node: DraNode) -> None:
    cgroups = Tree(node.directory / "cgroups", "systemd")
    cgroups.has(OWN, processes=True)
    lists = node.directory / "kubelet"
    lists.mkdir()
    with SimulatedKubelet(lists, pod_resources=lists / "pod-resources.sock"):
        plugin = node.start("1xH200", devices=27, GPU_SHARE_POD_UID=OWN)
        old = node.schedule("old", share(900))
        node.run(old)
        cgroups.has(pod_of(old), processes=True)
        node.scheduler.release(old)  # the claim is gone, and its containers go on
        node.kubelet.unprepare(old)
        assert plugin.logged("claim unprepared")["has_processes"] is True
        waiting = node.kubelet.begin_to_prepare(node.schedule("new", share(900)))
        wait_until(lambda: [(one.pod, one.parts) for one in occupants(node)] == [("old", 900)], timeout_seconds=20)
        wait_until(lambda: outlived(node) == [(900, 100)], timeout_seconds=20)
        assert not waiting.done()
        cgroups.has(pod_of(old), processes=False)
        (given,) = waiting.result(timeout=20).claims.values()
        assert not given.error
        assert given.devices
        wait_until(lambda: not occupants(node) and outlived(node)[0][0] == 0, timeout_seconds=20)


def test_a_claim_whose_pod_has_no_process_any_more_is_free_at_once(node: DraNode) -> None:
    Tree(node.directory / "cgroups", "systemd").has(OWN, processes=True)
    plugin = node.start("1xH200", devices=27, GPU_SHARE_POD_UID=OWN)
    old = node.schedule("old", share(900))
    node.run(old)
    node.scheduler.release(old)
    node.kubelet.unprepare(old)
    assert plugin.logged("claim unprepared")["hold_seconds"] == 0
    node.run(node.schedule("new", share(900)))
