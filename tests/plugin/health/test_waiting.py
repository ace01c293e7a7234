"""What is known of a plugin before it shares a GPU."""

from pathlib import Path

import msgspec
import pytest

from plugin.health.state import HEARTBEAT_SECONDS, Fault, NodeHealth, read_node_health, write_node_health
from plugin.health.waiting import WaitingNode
from tests.plugin.health.published import ago, healthy, node
from tests.plugin.health.watched_node import logged

XID = Fault(source="xid", why="XID 63", since=ago(hours=1), comes_back="once it is reset", xid=63)


def published(directory: Path) -> NodeHealth:
    found = read_node_health(directory)
    assert found is not None
    return found


def test_the_reason_is_told_when_it_changes_and_a_heartbeat_between(tmp_path: Path) -> None:
    seconds = [100.0]
    waiting = WaitingNode(tmp_path, boot_id="boot", before=None, clock=lambda: seconds[0])
    waiting.tell("")
    assert published(tmp_path).waiting is not None
    waiting.tell("no driver")
    first = published(tmp_path)
    assert first.waiting is not None
    assert (first.waiting.why, first.heartbeat_seconds, first.boot_id) == ("no driver", 100, "boot")
    seconds[0] += HEARTBEAT_SECONDS - 1
    waiting.tell("no driver")
    assert published(tmp_path) == first
    seconds[0] += 1
    waiting.tell("no driver")
    assert published(tmp_path) == msgspec.structs.replace(first, heartbeat_seconds=seconds[0])


def test_faults_that_an_earlier_plugin_knew_outlive_one_that_never_saw_a_gpu(tmp_path: Path) -> None:
    before = node(healthy(0, faults=(XID,)))
    write_node_health(tmp_path, before)
    waiting = WaitingNode(tmp_path, boot_id=before.boot_id, before=before)
    waiting.tell("no driver")
    waiting.end()
    assert published(tmp_path).gpus == before.gpus
    assert published(tmp_path).ended


def test_nothing_is_told_any_more_once_gpus_are_shared(tmp_path: Path) -> None:
    waiting = WaitingNode(tmp_path, boot_id="boot", before=None)
    waiting.is_over = True
    waiting.tell("no driver")
    assert read_node_health(tmp_path) is None


def test_a_state_that_cannot_be_written_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    waiting = WaitingNode(tmp_path / "missing", boot_id="boot", before=None)
    for why in ("one", "two", "three"):
        waiting.tell(why)
    assert len(logged(caplog, "`gpu-share plugin status` cannot show what is waited for")) == 1


def test_why_slices_cannot_be_withdrawn_is_told_at_once_and_beside_what_is_waited_for(tmp_path: Path) -> None:
    waiting = WaitingNode(tmp_path, boot_id="boot", before=None, clock=lambda: 100.0)
    waiting.tell("no driver")
    waiting.tell("no driver", slices_not_published="forbidden")
    told = published(tmp_path)
    assert told.waiting is not None
    assert (told.waiting.why, told.slices_not_published) == ("no driver", "forbidden")
    waiting.tell("no driver")
    assert published(tmp_path).slices_not_published == ""
