"""Thousands of files are read with fewer looks at each, and each still says what it would say alone."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policies.errors import PolicyError
from policies.policy import Policy
from policies.reading.document import read
from policies.reading.faults import faults, is_valid
from policies.reading.store import load
from program.files import read_file
from tests.policies.reading.fields import leaves_of, placed
from tests.policies.reading.test_wording import VALUES
from tests.policies.reading.volume import maximum, write

MIB = 1024 * 1024
# Of each kind that a field of a policy may have.
FITTING = ["0.2", "mps", "up", "warn", "pod", "deny", "gpu", "node", "/data", "NoExecute", "Exists", True, 300, None]


@given(field=st.sampled_from(leaves_of(Policy)), value=st.sampled_from(FITTING) | VALUES)
@example(field="hostPaths[].path", value="/proc/1")
@example(field="placement.tolerations[].operator", value="Equal")
def test_what_is_valid_at_one_look_has_no_fault_at_a_look_at_each_field(field: str, value: Any) -> None:
    node = read(json.dumps(placed(field, value)))
    assert not (is_valid(node.value) and list(faults(node, Policy)))


@pytest.mark.parametrize("field", leaves_of(Policy))
def test_an_unknown_field_beside_any_other_is_not_valid_at_one_look(field: str) -> None:
    assert not is_valid({field.partition(".")[0].partition("[")[0]: None, "unknown": 1})


def test_files_of_one_template_are_the_policies_of_their_own_namespaces(tmp_path: Path) -> None:
    text = "share: {maximum: '0.3'}\n"
    loaded = load(write(tmp_path, first=text, second=text, third="share: {maximum: '0.4'}\n"))
    assert [maximum(loaded, name) for name in ("first", "second", "third")] == ["0.3", "0.3", "0.4"]
    assert [loaded.of(name).name for name in ("first", "second")] == ["first", "second"]
    assert [str(loaded.of(name).source("share.maximum")) for name in ("first", "second")] == [
        "first.yaml:1",
        "second.yaml:1",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("frameworks: {detect: false}", r"_cluster\.yaml:1: frameworks: belongs in _default\.yaml"),
        ("vgpusPerGpu: 20", r"team\.yaml:1: vgpusPerGpu: belongs in _cluster\.yaml"),
    ],
)
def test_a_text_that_is_valid_for_a_namespace_or_the_cluster_is_not_so_for_both(
    tmp_path: Path, text: str, fault: str
) -> None:
    """The namespace 0 comes before the cluster's file, and team behind it."""
    write(tmp_path, **{"0": text, "_cluster": text, "team": text})
    with pytest.raises(PolicyError) as raised:
        load(tmp_path)
    assert any(re.search(fault, str(problem)) for problem in raised.value.problems)


@pytest.mark.parametrize("size", [0, 1, 16 * 1024, 16 * 1024 + 1, MIB - 1, MIB, MIB + 1])
def test_a_file_is_read_up_to_the_most_that_is_wanted(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    (tmp_path / "file").write_bytes(content)
    assert read_file(tmp_path / "file", most_bytes=MIB) == content[:MIB]
