"""What the documents tell an administrator to type is there."""

import re
from pathlib import Path

import click
import pytest

from policies.cluster import Cluster
from policies.reading.store import load
from tests.command_line import command, options
from tests.docs.pages import PAGES, name
from tests.manifests.render import MANIFESTS, OVERLAYS, ROOT, identity, render, templates

EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=name)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """Give the `nodes` that docs/operations.md proposes, as the nodes read them."""
    (example,) = re.findall(
        r"```yaml\n(# _cluster.yaml\n.*?)```", (ROOT / "docs" / "operations.md").read_text(), re.DOTALL
    )
    directory = tmp_path_factory.mktemp("policies")
    (directory / "_cluster.yaml").write_text(example)
    return load(directory).cluster


@pytest.mark.parametrize(
    ("node", "model", "index", "offer"),
    [
        ("small-1", "Tesla T4", 0, "time-slicing"),
        ("train-7", "NVIDIA H200", 3, "whole"),
        ("mixed-1", "NVIDIA H200", 1, "whole"),
        ("mixed-1", "NVIDIA H200", 2, "mps"),
        ("mixed-1", "NVIDIA H200", 7, None),
        ("other", "NVIDIA H200", 7, "mps"),
    ],
)
def test_the_example_of_several_kinds_says_what_its_comments_say(
    shown: Cluster, node: str, model: str, index: int, offer: str | None
) -> None:
    assert shown.strategy(node=node, model=model, index=index, otherwise="mps") == offer


@EVERY_PAGE
def test_every_variable_of_the_documents_is_an_option(page: Path) -> None:
    variables = {str(option.envvar) for _, option in options()}
    known = {*variables, "GPU_SHARE_FRACTION", "GPU_SHARE_MEMORY_MIB", "GPU_SHARE_CLUSTER_LOAD", "GPU_SHARE_"}
    assert set(re.findall(r"GPU_SHARE_[A-Z_]*", page.read_text())) <= known


@EVERY_PAGE
def test_every_part_that_a_command_selects_is_installed(page: Path) -> None:
    installed = {
        template["metadata"]["labels"]["app.kubernetes.io/component"]
        for template in templates(render(MANIFESTS)).values()
    }
    selected = re.findall(r"app\.kubernetes\.io/component(?:=(\w+)| in \(([\w, ]+)\))", page.read_text())
    assert {name for one, several in selected for name in (one or several).split(", ")} <= installed


@EVERY_PAGE
def test_every_object_that_a_command_names_is_installed(page: Path) -> None:
    names = {(kind.lower(), name) for kind, _, name in map(identity, render(MANIFESTS))}
    pattern = (
        r"(daemonset|deployment|cronjob|mutatingwebhookconfiguration|validatingadmissionpolicybinding)[ /]([a-z-]+)"
    )
    assert set(re.findall(pattern, " ".join(re.findall(r"kubectl .*", page.read_text())))) <= names


@EVERY_PAGE
def test_every_overlay_of_the_documents_is_there(page: Path) -> None:
    named = set(re.findall(r"(?:^|[ /])overlays/([a-z-]+)", page.read_text()))
    assert named <= {directory.name for directory in OVERLAYS}


def test_every_overlay_is_in_the_documents() -> None:
    text = (ROOT / "docs" / "install.md").read_text()
    assert not [directory.name for directory in OVERLAYS if f"manifests/overlays/{directory.name}" not in text]


@EVERY_PAGE
def test_no_command_of_the_documents_works_only_once(page: Path) -> None:
    created = re.findall(r"kubectl .*\bcreate (?:job|cronjob) .*", page.read_text())
    assert [line for line in created if "$(date" not in line] == []


def test_the_command_that_hurries_a_policy_reaches_every_part_that_reads_it_while_it_runs() -> None:
    (selected,) = re.findall(
        r"annotate pods -l 'app\.kubernetes\.io/component in \((.*)\)' --overwrite",
        (ROOT / "docs" / "operations.md").read_text(),
    )
    assert selected.split(", ") == ["webhook", "plugin", "mps"]


@pytest.mark.parametrize(
    "cause", ["a GPU is unhealthy", "none is shared yet", "the kubelet does not know", "ResourceSlices"]
)
def test_help_and_documents_name_each_cause_for_which_the_status_of_a_node_ends_with_1(cause: str) -> None:
    plugin = command("plugin")
    assert isinstance(plugin, click.Group)
    shown = plugin.commands["status"].help or ""
    (row,) = re.findall(r"^\| 1 \| `plugin status` \| .*", (ROOT / "docs" / "commands.md").read_text(), re.MULTILINE)
    (told,) = re.findall(r"Its exit code is 1 if .*?\.\s", (ROOT / "docs" / "operations.md").read_text(), re.DOTALL)
    lacking = [text for text in (shown, row, told) if cause not in " ".join(text.split())]
    assert lacking == []
