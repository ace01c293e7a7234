"""What `gpu-share doctor` says of the pattern that the admission policies have for the pipe directory."""

import re

import pytest

from console.doctor.report import AFTER, Finding, findings
from tests.console.wrong import of_second_places
from tests.docs.pages import ROOT


def found(directory: str, pipes: str) -> Finding:
    """Judge *pipes* of the policies where the cluster has its pipes in *directory*."""
    (one,) = (one for one in findings(of_second_places.moved(directory, pipes), AFTER) if one.check == "pipe-directory")
    return one


@pytest.mark.parametrize("directory", ["/srv/mps", "/run-mps/a.b", "/mps"])
def test_the_pattern_that_is_told_for_another_pipe_directory_is_the_right_one(directory: str) -> None:
    plain = found(directory, f"'{directory}'")
    pattern = plain.found[0].partition("expected ")[2]
    assert (plain.status, found(directory, pattern).status) == ("failure", "ok")
    meant, other = f"/.//{directory}/", f"/data{directory}"
    assert [bool(re.search(pattern.strip("'"), path)) for path in (directory, meant, other)] == [True, True, False]


def test_the_pattern_in_the_table_of_the_documents_is_right() -> None:
    (row,) = (one for one in (ROOT / "docs" / "install.md").read_text().splitlines() if one.startswith("| `mps.pipe"))
    ((directory, pattern),) = re.findall(r"for `(/[a-z/]+)` it is `([^`]+)`", row)
    assert found(directory, pattern).status == "ok"
