"""The ConfigMaps with the policies, and which of our pods a change of them replaces."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from policies.contract import DEFAULT_RESOURCE_NAMES, MPS
from policies.reading.store import load_cluster
from tests.manifests.config_maps import references
from tests.manifests.installations import each_installation, policy_files
from tests.manifests.render import MANIFESTS, OVERLAYS, ROOT, Object, render, templates

SHIPPED = ROOT / "policies" / "files"
CLUSTER = "_cluster.yaml"


def readers(objects: list[Object]) -> dict[str, Object]:
    """Return the pod templates that have a policy directory, by the name of their workload."""
    return {name[2]: template for name, template in templates(objects).items() if any(references(template))}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a copy of what the manifests are rendered from."""
    shutil.copytree(MANIFESTS, tmp_path / "manifests")
    shutil.copytree(SHIPPED, tmp_path / "policies" / "files")
    return tmp_path


def changed(tree: Path, file: str) -> Iterator[str]:
    """Yield the workloads whose pod template another content of *file* changes."""
    before = readers(render(MANIFESTS))
    with (tree / "policies" / "files" / file).open("a") as policies:
        policies.write("# changed\n")
    after = readers(render(tree / "manifests"))
    yield from (name for name, template in after.items() if template != before[name])


def test_every_part_that_reads_policies_gets_every_policy_file() -> None:
    objects = render(MANIFESTS)
    shipped = {path.name: path.read_text() for path in SHIPPED.glob("*.yaml")}
    read = {name: policy_files(objects, template) for name, template in readers(objects).items()}
    assert read == dict.fromkeys(("gpu-share-webhook", "gpu-share-plugin", "gpu-share-mps"), shipped)


@each_installation
def test_no_policy_file_is_in_two_config_maps(directory: Path) -> None:
    names = [name for one in render(directory) if one["kind"] == "ConfigMap" for name in one["data"]]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("file", [CLUSTER, "_default.yaml", "team-vision.yaml"])
def test_a_change_of_a_policy_file_replaces_no_pod(tree: Path, file: str) -> None:
    assert list(changed(tree, file)) == []


def test_an_overlay_with_another_cluster_file_has_it_where_running_pods_look() -> None:
    used: dict[str, set[tuple[str, ...]]] = {}
    for directory in (MANIFESTS, *OVERLAYS):
        objects = render(directory)
        plugin = readers(objects)["gpu-share-plugin"]
        names = tuple(one["name"] for one in references(plugin))
        used.setdefault(policy_files(objects, plugin)[CLUSTER], set()).add(names)
    assert len(used) == 3  # aws-resource and envvar have one of their own
    assert set.union(*used.values()) == {("gpu-share-policies", "gpu-share-cluster")}


@pytest.mark.parametrize(
    ("overlay", "fields"),
    [
        ("envvar", {"handover": ("envvar",)}),
        ("aws-resource", {"resource_names": DEFAULT_RESOURCE_NAMES | {MPS: "k8s.amazonaws.com/vgpu"}}),
    ],
)
def test_the_cluster_file_of_an_overlay_differs_in_what_it_is_for_alone(
    overlay: str, fields: dict[str, object]
) -> None:
    shipped, own = (msgspec.structs.asdict(load_cluster(one)) for one in (SHIPPED, MANIFESTS / "overlays" / overlay))
    assert {name: value for name, value in own.items() if value != shipped[name]} == fields


def test_every_cluster_file_of_an_overlay_is_compared_with_the_shipped_one() -> None:
    assert {path.parent.name for path in MANIFESTS.rglob(CLUSTER)} == {"aws-resource", "envvar"}


def test_a_leftover_cluster_file_in_the_other_config_map_counts_for_nothing() -> None:
    for template in readers(render(MANIFESTS)).values():
        assert [one["name"] for one in references(template)][-1] == "gpu-share-cluster"
