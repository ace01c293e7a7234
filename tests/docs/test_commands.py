"""What the documents tell an administrator to type is there."""

import re
from pathlib import Path

import pytest

from plugin.health.reports import Event
from plugin.health.rules import GpuState, Moment, struck
from plugin.health.state import write_node_health
from plugin.mps.state import MpsGpu, MpsState, write_state
from plugin.state_files import boot_id, boot_seconds
from policies.cluster import Cluster
from policies.reading.store import load
from tests.command_line import options
from tests.manifests.render import MANIFESTS, OVERLAYS, ROOT, identity, render, templates
from tests.plugin.health.told import ago, healthy, node, status

PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """Give the `nodes` that docs/operations.md proposes, as the nodes read them."""
    (example,) = re.findall(
        r"```yaml\n(# _cluster.yaml\n.*?)```", (ROOT / "docs" / "operations.md").read_text(), re.DOTALL
    )
    folder = tmp_path_factory.mktemp("policies")
    (folder / "_cluster.yaml").write_text(example)
    return load(folder).cluster


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
    known = {*variables, "GPU_SHARE_FRACTION", "GPU_SHARE_MEMORY_MIB", "GPU_SHARE_"}
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
    assert named <= {folder.name for folder in OVERLAYS}


def test_every_decision_is_in_the_list_of_them() -> None:
    folder = ROOT / "docs" / "decisions"
    pages = sorted(page for page in folder.glob("*.md") if page.name != "README.md")
    titles = [page.read_text().partition("\n")[0].removeprefix("# ") for page in pages]
    rows = re.findall(r"^\| (\d+) \| \[(.*)\]\((.*)\) \|$", (folder / "README.md").read_text(), re.MULTILINE)
    assert rows == [(str(int(page.name[:4])), title, page.name) for page, title in zip(pages, titles, strict=True)]


def test_the_status_that_is_shown_is_what_a_node_says(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```\n(GPUs: .*?)```", (ROOT / "docs" / "operations.md").read_text(), re.DOTALL)
    sick, well = re.findall(r"GPU-[0-9a-f-]{36}", shown)
    moment = Moment(seconds=0, text=ago(minutes=5))
    state = struck(GpuState(tells_recovery=True), Event(seconds=0, gpu_uuid=sick, what="XID 79", xid=79), moment)
    gpus = (
        healthy(0, uuid=sick, model="NVIDIA H200", since=moment.text, faults=state.faults),
        healthy(1, uuid=well, model="NVIDIA H200", since=ago(hours=4)),
    )
    write_node_health(tmp_path, node(*gpus, heartbeat_seconds=boot_seconds() - 2))
    ready = MpsGpu(state="ready", since=ago(hours=4), checked_seconds=boot_seconds())
    write_state(tmp_path, MpsState(boot_id=boot_id(), gpus={sick: ready, well: ready}))
    assert _timeless(status(tmp_path).stdout) == _timeless(shown)


def _timeless(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|wrote this \d+ s", "", text)


def test_every_overlay_is_in_the_documents() -> None:
    text = (ROOT / "docs" / "install.md").read_text()
    assert not [folder.name for folder in OVERLAYS if f"manifests/overlays/{folder.name}" not in text]


@EVERY_PAGE
def test_every_link_between_the_documents_leads_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([\w./-]*)#?([\w-]*)\)", page.read_text()):
        to = (page.parent / target).resolve() if target else page
        assert to.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", to.read_text(), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, anchor
