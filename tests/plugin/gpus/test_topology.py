"""How GPUs are connected, through the real bindings, and what that weighs."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from plugin.gpus.gpu import Gpu, Link, Pool, weight
from plugin.gpus.nvml import Nvml
from plugin.gpus.topology import read_links
from tests.plugin.nvml_library import Script, bound, build

UUIDS = [f"GPU-00000000-0000-0000-0000-00000000000{index}" for index in range(4)]
GPUS = [
    Gpu(uuid=uuid, index=index, minor=index, model="H200", memory_bytes=1 << 37, numa_node=index // 2)
    for index, uuid in enumerate(UUIDS)
]


@pytest.fixture(params=[[], ["-DOLD"]], ids=["new", "old"])
def nvml(request: pytest.FixtureRequest, tmp_path: Path, script: Script) -> Iterator[tuple[Nvml, bool]]:
    with bound(build(tmp_path, *request.param)) as found:
        script.say("count 4")
        found.nvmlInit()
        yield found, not request.param
        found.nvmlShutdown()


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    script = Script(tmp_path)
    for name, value in script.environment.items():
        monkeypatch.setenv(name, value)
    return script


def links(nvml: Nvml) -> list[tuple[Link, ...]]:
    handles = {uuid: nvml.nvmlDeviceGetHandleByIndex(index) for index, uuid in enumerate(UUIDS)}
    return [read_links(nvml, handles, of=uuid) for uuid in UUIDS]


def test_links_and_common_ancestors_are_read_where_the_driver_tells(nvml: tuple[Nvml, bool], script: Script) -> None:
    library, is_new = nvml
    script.say("nvlink 0 1 4", "nvlink 0 2 2", "nvlink 0 -1 3", "ancestor 0 1 10", "ancestor 2 3 50")
    found = links(library)
    if not is_new:
        assert found == [()] * 4
        return
    first, second, third, fourth = UUIDS
    assert found == [
        (Link(gpu_uuid=second, nvlinks=4, common_ancestor=10), Link(gpu_uuid=third, nvlinks=2)),
        (Link(gpu_uuid=first, nvlinks=4, common_ancestor=10),),
        (Link(gpu_uuid=first, nvlinks=2), Link(gpu_uuid=fourth, common_ancestor=50)),
        (Link(gpu_uuid=third, common_ancestor=50),),
    ]


@pytest.mark.parametrize("nvml", [[]], indirect=True)
def test_a_gpu_that_is_lost_costs_its_own_connections(nvml: tuple[Nvml, bool], script: Script) -> None:
    library, _ = nvml
    script.say("nvlink 0 1 4", "nvlink 2 3 4", "ancestor 0 1 10", "ancestor 2 3 10", "lost 1")
    found = links(library)
    assert [len(of) for of in found] == [1, 0, 1, 1]
    assert found[0] == (Link(gpu_uuid=UUIDS[1], nvlinks=4),)


@pytest.mark.parametrize("call", ["TopologyCommonAncestor", "NvLinkState", "NvLinkRemotePciInfo", "PciInfo"])
def test_no_failure_of_a_question_is_passed_on(call: str) -> None:
    class Failing:
        NVMLError = RuntimeError

        def __getattr__(self, name: str) -> Any:
            if name == f"nvmlDeviceGet{call}":
                raise_it = RuntimeError("any error")

                def fail(*_: object) -> None:
                    raise raise_it

                return fail
            info = type("Info", (), {"busId": b"00000000:3B:00.0"})
            return lambda *_: info if name.endswith("PciInfo") else 1

    assert isinstance(read_links(Failing(), {"a": 0, "b": 1}, of="a"), tuple)


def linked(one: Gpu, other: Gpu, **link: Any) -> tuple[Gpu, Gpu]:
    return replace(one, links=(Link(gpu_uuid=other.uuid, **link),)), other


def test_the_nearer_the_more_and_an_nvlink_is_more_than_all_of_pcie() -> None:
    near, far = GPUS[:2], GPUS[1:3]
    by_level = [weight(*linked(*near, common_ancestor=level)) for level in (0, 10, 20, 30, 40, 50)]
    assert by_level == sorted(by_level, reverse=True)
    assert len(set(by_level)) == 6
    assert weight(*linked(GPUS[0], GPUS[3], nvlinks=1)) > by_level[0]
    assert weight(*near) > weight(*far)
    assert weight(*linked(*near, common_ancestor=999)) == weight(*near)


def test_a_link_counts_whichever_of_the_two_knows_it() -> None:
    for one, other in combinations(GPUS, 2):
        knows, does_not = linked(one, other, nvlinks=4, common_ancestor=10)
        assert weight(knows, does_not) == weight(does_not, knows)


def test_nothing_known_is_the_same_for_all() -> None:
    strangers = tuple(replace(gpu, numa_node=None) for gpu in GPUS)
    weights = Pool(gpus=strangers, vgpus_per_gpu=1).weights
    assert {value for row, of in enumerate(weights) for column, value in enumerate(of) if row != column} == {10}
    assert all(weights[place][place] == 0 for place in range(4))
