"""A specification is taken for ours where nobody has edited it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plugin.errors import HandoverError
from plugin.shares import cdi_directory
from plugin.shares.cdi import Grid, specification
from plugin.shares.cdi_form import is_ours
from plugin.shares.strategy import Sharing, TimeSlicing, Whole
from tests.plugin.shares.cdi_node import OLD, Node, full, held
from tests.plugin.shares.two_gpus import MPS, NAME, A, B


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


EDITED: dict[str, Callable[[dict[str, Any]], object]] = {
    "a version that runtimes skip": lambda made: made.update(cdiVersion="9.0.0"),
    "no version": lambda made: made.pop("cdiVersion"),
    "edits of every container": lambda made: made.update(containerEdits={"env": ["NVIDIA_VISIBLE_DEVICES=all"]}),
    "a field of a later version": lambda made: made.update(annotations={}),
    "two devices of a name": lambda made: made["devices"].append(made["devices"][0]),
    "a device without edits": lambda made: made["devices"].append({"name": "GPU-1of1"}),
    "a device with a field of others": lambda made: made["devices"].append(OTHER | {"annotations": {}}),
    "a name that is none": lambda made: made["devices"].append(OTHER | {"name": "0 of 1"}),
    "a name that is not one of ours": lambda made: made["devices"].append(OTHER | {"name": "mine"}),
    "edits that are none": lambda made: made["devices"].append(OTHER | {"containerEdits": {"env": "A=B"}}),
    "edits that we do not make": lambda made: made["devices"].append(OTHER | {"containerEdits": {"hooks": []}}),
    "a variable without a value": lambda made: made["devices"].append(OTHER | {"containerEdits": {"env": ["A"]}}),
    "a mount without a place": lambda made: made["devices"].append(
        OTHER | {"containerEdits": {"env": ["A=B"], "mounts": [{"hostPath": "/a"}]}}
    ),
}
OTHER: dict[str, Any] = {"name": "GPU-1of1", "containerEdits": {"env": ["A=B"]}}


@pytest.mark.parametrize("edited", EDITED)
@pytest.mark.parametrize("way", ["while the plugin runs", "at its start"])
def test_a_specification_that_somebody_edited_is_not_taken_for_ours_where_it_cannot_be_written_again(
    node: Node, monkeypatch: pytest.MonkeyPatch, edited: str, way: str
) -> None:
    node.holds(held(A, of=20))
    node.starts(A)
    (file,) = node.directory.iterdir()
    made = json.loads(file.read_text())
    EDITED[edited](made)
    file.write_text(json.dumps(made))
    monkeypatch.setattr(cdi_directory, "write_specification", full)
    node.holds()
    with pytest.raises(HandoverError, match="no space left"):
        node.specifications.restore() if way == "while the plugin runs" else node.starts(A)
    monkeypatch.undo()
    node.starts(A)
    assert node.has(A)


@pytest.mark.parametrize("resource", [NAME, "example.com/x", "1a.org/v.gpu"])
@pytest.mark.parametrize("of", [1, 7, 1000])
@pytest.mark.parametrize("sharing", [MPS, TimeSlicing(), Whole()])
def test_what_is_made_is_taken_for_ours_and_only_as_that_resources(sharing: Sharing, of: int, resource: str) -> None:
    instance = replace(A, uuid="MIG-a1b2c3d4-e5f6-a7b8-c9d0-e1f2a3b4c5d6")
    made = specification(resource, [Grid(gpu, sharing, of) for gpu in (A, B, instance)])
    assert is_ours(made, resource)
    assert not is_ours(made, OLD)
