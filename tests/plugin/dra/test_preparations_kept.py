"""What stays on the disk of what was prepared, for the plugin that comes next."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from plugin.dra.checkpoint import HeldDevice
from plugin.errors import ClaimError, DraError, HandoverError
from tests.plugin.dra.prepared import device, made, prepare
from tests.plugin.shares.cdi_runtime import read_directory


def test_what_an_earlier_plugin_has_prepared_counts_by_its_size(tmp_path: Path) -> None:
    prepare(made(tmp_path), "old", device(900, "GPU-0"))
    file = tmp_path / "checkpoint.json"
    content = json.loads(file.read_text())
    del content["claims"]["old"]["devices"][0]["of"]
    file.write_text(json.dumps(content))
    prepare(made(tmp_path), "new", device(100, "GPU-0"))


def test_what_ran_before_the_machine_started_holds_nothing(tmp_path: Path) -> None:
    prepare(made(tmp_path), "old", device(900, "GPU-0"))
    after = made(tmp_path, boot_id="next")
    prepare(after, "new", device(900, "GPU-0"))
    with pytest.raises(ClaimError):
        prepare(after, "old", device(900, "GPU-0"))  # its GPU went to another: the kubelet tries again
    assert after.unprepare("old")


def test_what_a_claim_was_given_holds_until_the_machine_starts_again(tmp_path: Path) -> None:
    def numbered(node: str) -> HeldDevice:
        return msgspec.structs.replace(device(900, "GPU-0"), edits={"deviceNodes": [{"path": node}]})

    def nodes() -> list[object]:
        return [edits["deviceNodes"][0]["path"] for edits in read_directory(tmp_path / "cdi").values()]

    prepare(made(tmp_path), "u", numbered("/dev/nvidia1"))
    prepare(made(tmp_path), "u", numbered("/dev/nvidia0"))
    assert nodes() == ["/dev/nvidia1"]
    after = made(tmp_path, boot_id="next")  # nvidia1 can be another GPU's now
    after.restore()
    assert nodes() == []
    prepare(after, "u", numbered("/dev/nvidia0"))
    after.restore()
    assert nodes() == ["/dev/nvidia0"]


def test_a_checkpoint_that_cannot_be_read_is_no_empty_one(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.json").write_text('{"claims": {"u": 1}}')
    with pytest.raises(DraError, match="nobody knows which claims hold which GPUs: drain the node"):
        made(tmp_path)


def test_a_checkpoint_with_a_part_that_is_none_is_no_empty_one_either(tmp_path: Path) -> None:
    prepare(made(tmp_path), "u", device(500, "GPU-0"))
    file = tmp_path / "checkpoint.json"
    kept = file.read_text()
    assert '"of":10' in kept
    file.write_text(kept.replace('"of":10', '"of":0'))
    with pytest.raises(DraError, match="nobody knows which claims hold which GPUs: drain the node"):
        made(tmp_path)


def test_a_pipe_in_the_place_of_the_checkpoint_is_no_empty_one_either(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "checkpoint.json")
    with pytest.raises(DraError, match="a named pipe"):
        made(tmp_path)


def test_a_claim_is_on_the_disk_before_its_container_gets_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on, forced = made(tmp_path), list[bool]()
    monkeypatch.setattr(os, "fsync", lambda _: forced.append(any((tmp_path / "cdi").glob("*"))))
    prepare(on, "u", device(500, "GPU-0"))
    assert forced == [False, False]  # the file, and its name


def test_other_files_of_the_directory_are_left_alone(tmp_path: Path) -> None:
    others = ("gpu-share_gpu-share.dev_vgpu.json", "gpu-share-claim_x.yaml", "nvidia.json")
    stale = ("gpu-share-claim_gone.json", ".gpu-share-claim_u.json.12.new")
    (tmp_path / "cdi" / "gpu-share-claim_directory.json").mkdir(parents=True)
    for name in (*others, *stale):
        (tmp_path / "cdi" / name).touch()
    made(tmp_path)
    assert {path.name for path in (tmp_path / "cdi").iterdir()} == {*others, "gpu-share-claim_directory.json"}


def test_a_directory_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "cdi").touch()
    on = made(tmp_path)
    assert "--cdi-dir" in on.unwritten()
    with pytest.raises(HandoverError, match="--cdi-dir"):
        prepare(on, "u", device(100, "GPU-0"))


def test_a_claim_that_no_device_of_nvidias_brings_its_gpu_needs_the_variable_until_it_is_taken_back(
    tmp_path: Path,
) -> None:
    on = made(tmp_path)
    prepare(on, "later", msgspec.structs.replace(device(300, "GPU-0"), others=("nvidia.com/gpu=0",)))
    assert not on.by_variable()
    prepare(on, "earlier", device(300, "GPU-0"))
    assert made(tmp_path).by_variable()
    on.unprepare("earlier")
    assert not on.by_variable()
