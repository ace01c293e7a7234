"""What a node publishes is read whatever its version adds, and never trusted."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.node_state import (
    LARGEST_BYTES,
    VERSION,
    Ages,
    ApplicationFault,
    Fault,
    Gpu,
    MpsDaemon,
    NodeState,
    NodeStateError,
    Tenant,
    Use,
    read,
    write,
)
from policies.node_values import printable
from policies.outsiders import OfNode, Outsider

NOW = "2026-01-01T00:00:00+00:00"
TENANT = Tenant(
    namespace="team-a",
    pod="resnet-0",
    container="main",
    parts=2,
    memory_limit_bytes=2**30,
    thread_limit_ratio=0.2,
    since=NOW,
    use=Use(memory_bytes=2**20, sm_ratio=0.5, processes=1),
)
GPU = Gpu(
    uuid="GPU-1",
    index=0,
    model="NVIDIA H200",
    resource="gpu-share.dev/vgpu",
    strategy="mps",
    allocation="device-plugin",
    faults=(Fault(source="xid", why="the driver reported XID 79", since=NOW, xid=79),),
    application_fault=ApplicationFault(xid=31, at=NOW, tenants=("team-a/resnet-0/main",)),
    mps_daemon=MpsDaemon(state="ready", since=NOW),
    memory_bytes=2**37,
    limits_enforced_by="mps",
    parts=10,
    granted=2,
    hidden=0,
    free=8,
    largest_free=8,
    tenants=(TENANT,),
    outsiders=(Outsider(namespace="team-b", pod="hog", container="main", processes=1, memory_bytes=2**20),),
    of_node=OfNode(processes=1),
)
STATE = NodeState(version=VERSION, part="plugin", program="0.1.0", node="worker-1", ages=Ages(health=1.5), gpus=(GPU,))
SMALLEST = {"version": 1, "part": "plugin", "program": "0.1.0", "node": "worker-1"}


def changed(path: str, value: object) -> bytes:
    """Write the state with another value at a place such as gpus.0.uuid."""
    document = json.loads(write(STATE))
    *above, last = path.split(".")
    place: Any = document
    for step in above:
        place = place[int(step) if step.isdigit() else step]
    place[last] = value
    return json.dumps(document).encode()


def test_what_is_written_is_read() -> None:
    assert read(write(STATE)) == STATE


def test_what_a_newer_node_adds_is_ignored_and_what_it_calls_otherwise_stays_a_text() -> None:
    document = json.loads(write(STATE))
    document["added"] = {"later": [1]}
    document["gpus"][0] |= {"added": 1, "strategy": "mps-v3", "limits_enforced_by": "dmem"}
    document["gpus"][0]["tenants"][0]["added"] = None
    gpu = read(json.dumps(document).encode()).gpus[0]
    assert (gpu.strategy, gpu.limits_enforced_by, gpu.tenants) == ("mps-v3", "dmem", GPU.tenants)


def test_what_an_older_node_lacks_is_not_known_and_never_0() -> None:
    smallest = SMALLEST | {"gpus": [{"uuid": "GPU-1", "index": 0}]}
    (gpu,) = read(json.dumps(smallest).encode()).gpus
    assert (gpu.granted, gpu.free, gpu.largest_free, gpu.memory_bytes, gpu.healthy) == (None, None, None, None, False)
    assert (gpu.outsiders, gpu.of_node) == (None, None)


@pytest.mark.parametrize(("version", "what"), [(2, "use the gpu-share of the node's version"), (0, "upgrade the node")])
def test_another_version_says_which_program_is_too_old(version: int, what: str) -> None:
    with pytest.raises(NodeStateError, match=f"in version 1, got {version}, .*{what}"):
        read(json.dumps({"version": version, "gpus": "something else by then"}).encode())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("node", "worker\x1b[2J"),
        ("node", "worker\n"),
        ("node", ""),
        ("driver", "580\x9b2J"),
        ("waiting", "\u202eevil"),
        ("handover", "x" * 2049),
        ("not_registered", [{"resource": "gpu-share.dev/vgpu", "why": "\x1b[2J"}]),
        ("ages.health", -1),
        ("gpus.0.uuid", 'GPU-1" onmouseover="'),
        ("gpus.0.parts", 0),
        ("gpus.0.parts", 1001),
        ("gpus.0.free", -1),
        ("gpus.0.free", 1.5),
        ("gpus.0.memory_bytes", 2**53),
        ("gpus.0.since", "<script>"),
        ("gpus.0.tenants.0.pod", "../../secret"),
        ("gpus.0.tenants.0.namespace", "a" * 254),
        ("gpus.0.tenants.0.use.sm_ratio", 1.01),
        ("gpus.0.tenants.0.use.memory_bytes", True),
        ("gpus.0.outsiders.0.pod", "hog\x1b[2J"),
        ("gpus.0.outsiders.0.container", ""),
        ("gpus.0.outsiders.0.processes", -1),
        ("gpus.0.outsiders", [{"namespace": "a", "pod": "b", "container": "c", "processes": 1}] * 51),
        ("gpus.0.of_node", {"processes": 1, "memory_bytes": -1}),
        ("gpus", [{"uuid": "GPU-1", "index": 0}] * 257),
    ],
)
def test_what_no_node_of_ours_can_have_written_is_rejected(path: str, value: object) -> None:
    with pytest.raises(NodeStateError, match="expected the state of a node"):
        read(changed(path, value))


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"[]", b"null", b'{"version": 1}', b"<html>", b'{"x": ' + b"[" * 100_000]
)
def test_what_is_not_the_state_of_a_node_is_one_sentence(content: bytes) -> None:
    with pytest.raises(NodeStateError) as rejected:
        read(content)
    assert "\n" not in str(rejected.value)
    assert len(str(rejected.value)) < 400


def test_an_answer_without_end_is_not_parsed() -> None:
    with pytest.raises(NodeStateError, match=f"at most {LARGEST_BYTES} bytes"):
        read(b" " * (LARGEST_BYTES + 1))


def test_a_full_node_is_far_below_the_limit() -> None:
    longest = Tenant(namespace="n" * 63, pod="p" * 253, container="c" * 63, parts=10, since=NOW, use=TENANT.use)
    gpus = tuple(Gpu(uuid=f"GPU-{index}", index=index, parts=1000, tenants=(longest,) * 100) for index in range(64))
    content = write(NodeState(version=1, part="plugin", program="0.1.0", node="worker-1", gpus=gpus))
    assert len(read(content).gpus) == 64
    assert len(content) < LARGEST_BYTES / 1.5


@given(st.text())
def test_any_text_can_be_made_one_that_is_read(text: str) -> None:
    shown = printable(text)
    assert read(write(NodeState(version=1, part="plugin", program=shown, node="n"))).program == shown
    if text.isprintable():
        assert shown == text


def test_a_share_is_a_part_of_the_gpu_in_either_unit() -> None:
    assert (GPU.ratio(2), Gpu(uuid="a", index=0, parts=1000).ratio(333)) == (0.2, 0.333)
