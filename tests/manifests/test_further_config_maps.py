"""The patch of docs/policies.md that puts a further ConfigMap before those of the administrators."""

import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from console.objects import Pod
from policies.policy_volume import ConfigMapSource, files_of, sources_of
from policies.reading.directory import MOST_FILES
from tests.console.installations import parsed
from tests.manifests.installations import each_installation
from tests.manifests.json_patch import patched
from tests.manifests.render import MANIFESTS, ROOT, Object, containers, render, templates
from tests.manifests.test_render import KUBECTL

WANTED = ("team-policies", "gpu-share-policies", "gpu-share-cluster")


def proposed() -> str:
    """The patch as the page has it."""
    text = (ROOT / "docs" / "policies.md").read_text()
    (found,) = re.findall(r"```yaml\n(patches:\n.*?)```", text, re.DOTALL)
    return str(found)


def names(template: Object) -> tuple[str, ...]:
    sources = sources_of(parsed({"spec": template["spec"]}, Pod).spec.volumes)
    return tuple(one.name for one in sources or ())


def readers(objects: list[Object]) -> dict[str, tuple[str, ...]]:
    """Which ConfigMaps each workload reads that has a directory of policies."""
    return {
        name: names(template)
        for (_, _, name), template in templates(objects).items()
        if any(mount["name"] == "policies" for one in containers(template) for mount in one.get("volumeMounts", []))
    }


def selects(target: dict[str, Any], one: Object) -> bool:
    """Whether kustomize takes an object for the target: both are patterns for the whole of a text."""
    return bool(re.fullmatch(target["kind"], one["kind"]) and re.fullmatch(target["name"], one["metadata"]["name"]))


@each_installation
def test_it_puts_a_further_config_map_before_the_others_of_every_part_that_reads_them(directory: Path) -> None:
    (entry,) = yaml.safe_load(proposed())["patches"]
    assert entry.keys() == {"target", "patch"}
    made = [
        patched(one, yaml.safe_load(entry["patch"])) if selects(entry["target"], one) else one
        for one in render(directory)
    ]
    assert set(readers(made).values()) == {WANTED}


def test_it_takes_from_it_what_items_name_alone_so_that_its_author_cannot_give_more_files_than_are_read() -> None:
    (entry,) = yaml.safe_load(proposed())["patches"]
    *_, operation = yaml.safe_load(entry["patch"])
    added = msgspec.convert(operation["value"]["configMap"], ConfigMapSource)
    held = {f"team-{number}.yaml": b"" for number in range(MOST_FILES)} | {"team-vision.yaml": b"mode: warn"}
    assert files_of(added, held) == {"team-vision.yaml": b"mode: warn"}
    assert files_of(added, {}) == files_of(added, None) == {}


@pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl here that builds kustomizations")
def test_kubectl_builds_the_same(tmp_path: Path) -> None:
    (tmp_path / "gpu-share").symlink_to(ROOT)
    (tmp_path / "kustomization.yaml").write_text(f"resources: [gpu-share/manifests]\n{proposed()}")
    built = subprocess.run([str(KUBECTL), "kustomize", str(tmp_path)], capture_output=True, text=True, check=True)
    found = readers(list(yaml.safe_load_all(built.stdout)))
    assert found == dict.fromkeys(readers(render(MANIFESTS)), WANTED)
