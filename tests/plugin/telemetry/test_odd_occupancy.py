"""Whatever the file says of who has which share, metrics, state and status of the node are told all the same."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plugin.health.state import write_node_health
from plugin.health.status import show
from plugin.pod_resources.occupancy import FILE
from plugin.presence import PLUGIN, alone
from plugin.state_files import boot_id
from plugin.telemetry.node import node_state, read_facts
from plugin.telemetry.samples import mps_samples, plugin_samples
from plugin.usage.record import GpuUse, write_use
from policies.cluster import Cluster
from policies.node_state import NodeState, read, write
from program.metrics import answer
from tests.plugin.health.published import healthy, node, occupancy, occupant, occupied, taken, use

A = occupant("a", 3, memory_limit_mib=300, thread_percentage=30, since="2026-01-01T00:00:00+00:00")
GOOD: dict[str, Any] = msgspec.to_builtins(occupancy(occupied(A, occupant("b", 2), advertised=9)))
ODD_NUMBERS = st.sampled_from([0, -1, 101, 1001, 2**53, 2**64, 10**400, -(10**400), 0.5, -0.0, 1e300])
FIRST, LAST = "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"
ODD_TEXTS = st.sampled_from(["", "x", "2026", "0001-01-01T00:00:00", FIRST, LAST, "\x1b[2J", "a" * 5000])
ODD = st.one_of(
    ODD_NUMBERS, ODD_TEXTS, st.none(), st.booleans(), st.integers(), st.text(), st.just([]), st.just({}), st.just([{}])
)


def places(of: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List all that a file could say otherwise."""
    inner = of.items() if isinstance(of, dict) else enumerate(of) if isinstance(of, list | tuple) else ()
    return [path] * bool(path) + [place for key, value in inner for place in places(value, (*path, key))]


def changed(place: tuple[Any, ...], value: object) -> bytes:
    made = json.loads(json.dumps(GOOD))
    at = made
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    return json.dumps(made).encode()


CONTENTS = st.one_of(st.binary(max_size=200), st.builds(changed, st.sampled_from(places(GOOD)), ODD))


def told(directory: Path, content: bytes | None) -> NodeState:
    """Look in every way at a node with that file, and give what readers get."""
    if content is not None:
        (directory / FILE).write_bytes(content)
    write_node_health(directory, node(healthy(0)))
    write_use(directory, use(GpuUse(containers=(taken(A),), complete=True)))
    state = node_state(read_facts(directory, boot_id=boot_id()), part="plugin", node="worker-1")
    assert b"gpu_share_gpu_healthy" in answer(plugin_samples(state)).body
    answer(mps_samples(state))
    with alone(directory, PLUGIN):
        assert show(directory, output="text") == show(directory, output="json") == 0
    return read(write(state))


@pytest.mark.parametrize("device", ["model-tesla-t4-sixteen-gb", "mig-1g.10gb"])
def test_the_longest_resource_that_policies_can_name_is_told(tmp_path: Path, device: str) -> None:
    longest = f"{'.'.join(['a' * 36] * 3)}.abcd/vgpu"
    cluster = msgspec.convert({"resourceNames": {"mps": longest}}, Cluster)
    resource = cluster.resource("mps", device)
    assert (len(longest), len(resource)) == (120, 121 + len(device))
    content = msgspec.json.encode(occupancy(occupied(A, resource=resource)))
    (gpu,) = told(tmp_path, content).gpus
    assert (gpu.resource, [one.pod for one in gpu.tenants]) == (resource, ["a"])


@settings(deadline=None)
@given(content=CONTENTS)
@example(content=changed(("gpus", "GPU-0", "occupants", 0, "since"), "x"))
@example(content=changed(("gpus", "GPU-0", "occupants", 0, "since"), FIRST))
@example(content=changed(("gpus", "GPU-0", "occupants", 0, "since"), LAST))
@example(content=b"[" * 100_000)
@example(content=changed(("gpus", "GPU-0", "parts"), 0))
@example(content=changed(("gpus", "GPU-0", "vgpus_per_gpu"), 0))
def test_no_content_keeps_the_rest_of_a_node_from_being_told(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    (gpu,) = told(tmp_path_factory.getbasetemp(), content).gpus
    assert gpu.healthy


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("looked_seconds",), -1),
        (("looked_seconds",), 1e300),
        (("gpus", "GPU-0", "parts"), 0),
        (("gpus", "GPU-0", "parts"), 1001),
        (("gpus", "GPU-0", "vgpus_per_gpu"), 0),
        (("gpus", "GPU-0", "granted"), -1),
        (("gpus", "GPU-0", "strategy"), "a b"),
        (("gpus", "GPU-0", "occupants", 0, "namespace"), ""),
        (("gpus", "GPU-0", "occupants", 0, "parts"), -1),
        (("gpus", "GPU-0", "occupants", 0, "thread_percentage"), 101),
        (("gpus", "GPU-0", "occupants", 0, "memory_limit_mib"), 2**53),
        (("gpus", "GPU-0", "occupants", 0, "since"), "x"),
        (("gpus", "GPU-0", "occupants", 0, "since"), "2026-01-01T00:00:00"),
        (("gpus", "GPU-0", "occupants", 0, "since"), "2026-13-01T00:00:00+00:00"),
    ],
)
def test_a_file_that_cannot_be_true_counts_as_none_and_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, place: tuple[Any, ...], value: object
) -> None:
    content = changed(place, value)
    for _ in range(2):
        state = told(tmp_path, content)
        assert state.tenants_unknown == "gpu-share plugin has not said yet who has which share"
        assert (state.gpus[0].granted, state.gpus[0].tenants) == (None, ())
    (warned,) = caplog.records
    assert warned.message == "who has which share cannot be read: the file counts as none"
    assert str(tmp_path / FILE) in warned.__dict__["reason"]


@pytest.mark.parametrize("content", [json.dumps(GOOD).encode(), None], ids=["good", "none"])
def test_a_file_that_can_be_true_and_none_at_all_are_warned_of_never(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes | None
) -> None:
    assert [len(one.tenants) for one in told(tmp_path, content).gpus] == [2 if content else 0]
    assert caplog.records == []
