"""
Render the manifests as kustomize does: `python -m tests.manifests.render` writes `manifests/install.yaml`, the
DeviceClasses and what `gpu-share doctor` knows of the policies, `--check` checks that they are up to date.

It supports what `manifests/` uses of kustomize, and raises on everything else, so that the manifests can be rendered
and tested without kubectl. Where there is kubectl, a test compares the two.
"""

import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.manifests import admission_digests, device_classes
from tests.manifests.config_maps import add_hash
from tests.manifests.json_patch import PatchError, patched
from tests.manifests.yaml_file import written

Object = dict[str, Any]

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"
INSTALL = MANIFESTS / "install.yaml"
OVERLAYS = sorted(path.parent for path in (MANIFESTS / "overlays").glob("*/kustomization.yaml"))
KUSTOMIZATION_FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")

_FIRST = ("Namespace", "ResourceQuota", "ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
_LAST = ("MutatingWebhookConfiguration",)
_WANTS_HASH = "wants a hash in its name"  # a field of ConfigMaps while they are put together


class RenderError(Exception):
    """A kustomization that is invalid, or uses what is not supported here."""


def render(directory: Path) -> list[Object]:
    """
    Build the kustomization of *directory*.

    Raises:
        RenderError: If it is invalid, or uses what is not supported here.
    """
    return deepcopy(_built(directory.resolve()))


def identity(one: Object) -> tuple[str, str, str]:
    """Return kind, namespace and name, which are unique for each object."""
    metadata = one["metadata"]
    return one["kind"], metadata.get("namespace", ""), metadata["name"]


def pod_template(one: Object) -> Object | None:
    """Return the pod template of a workload; None for other objects."""
    if one["kind"] not in {"Deployment", "DaemonSet", "Job"}:
        return None
    template: Object = one["spec"]["template"]
    return template


def templates(objects: list[Object]) -> dict[tuple[str, str, str], Object]:
    """Return all pod templates, by the identity of their workload."""
    return {identity(one): template for one in objects if (template := pod_template(one)) is not None}


def containers(template: Object) -> list[Object]:
    """Return all containers of a pod template."""
    spec = template["spec"]
    return [*spec.get("initContainers", []), *spec["containers"]]


@cache
def _built(directory: Path) -> list[Object]:
    objects: list[Object] = []
    _accumulate(directory, objects)
    for one in objects:
        if one.pop(_WANTS_HASH, False):
            add_hash(one, filter(None, map(pod_template, objects)))
    return sorted(objects, key=_order)


def _accumulate(directory: Path, objects: list[Object]) -> None:
    """Apply the kustomization in *directory* to *objects*, in the order of kustomize."""
    steps: dict[str, Callable[[list[Object], Any], None]] = {
        "resources": lambda into, entry: _resource(directory, into, entry),
        "components": lambda into, entry: _accumulate((directory / entry).resolve(), into),
        "configMapGenerator": lambda into, entry: _config_map(directory, into, entry),
        "patches": lambda into, entry: _patch(directory, into, entry),
        "labels": _label,
        "images": _image,
    }
    content = _kustomization(directory)
    _known(content, {"apiVersion", "kind", *steps}, directory)
    for step, do in steps.items():
        for entry in content.get(step, []):
            do(objects, entry)


def _kustomization(directory: Path) -> Object:
    found = [directory / name for name in KUSTOMIZATION_FILES if (directory / name).is_file()]
    if len(found) != 1:
        raise RenderError(f"{directory}: expected one kustomization file, got {len(found)}")
    content: Object = yaml.load(found[0].read_text(), yaml.CSafeLoader)
    return content


def _resource(directory: Path, into: list[Object], entry: str) -> None:
    path = (directory / entry).resolve()
    added: list[Object] = []
    if path.is_dir():
        if directory.is_relative_to(path):
            raise RenderError(f"{directory}: {entry} contains this directory, which kustomize rejects as a cycle")
        _accumulate(path, added)
    else:
        added = list(yaml.load_all(_own(directory, path).read_text(), yaml.CSafeLoader))
    present = {identity(one) for one in into}
    for one in added:
        if identity(one) in present:
            raise RenderError(f"{directory}: {entry} contains {identity(one)} a second time")
        into.append(one)


def _own(directory: Path, path: Path) -> Path:
    if not path.is_relative_to(directory):
        raise RenderError(f"{path}: kustomize reads no files outside {directory}")
    return path


def _config_map(directory: Path, into: list[Object], entry: Object) -> None:
    _known(entry, {"name", "namespace", "behavior", "files", "options"}, directory)
    options = entry.get("options", {})
    _known(options, {"disableNameSuffixHash", "labels"}, directory)
    labels = {"labels": dict(options["labels"])} if "labels" in options else {}
    data = {name: _own(directory, (directory / name).resolve()).read_text() for name in entry["files"]}
    made = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": entry["name"], "namespace": entry["namespace"], **labels},
        "data": data,
        _WANTS_HASH: not options.get("disableNameSuffixHash"),
    }
    same = [one for one in into if identity(one) == identity(made)]
    match entry.get("behavior", "create"), same:
        case "create", []:
            into.append(made)
        case "merge", [one]:
            one["data"] |= data
        case "replace", [one]:
            one["data"] = data
        case behavior, _:
            raise RenderError(
                f"{directory}: expected one ConfigMap {entry['name']} to {behavior}, or none to create, got {len(same)}"
            )


def _patch(directory: Path, into: list[Object], entry: Object) -> None:
    """Apply a JSON patch to the objects that a target selects, or delete them."""
    _known(entry, {"path", "patch", "target"}, directory)
    text = entry["patch"] if "patch" in entry else _own(directory, (directory / entry["path"]).resolve()).read_text()
    patch, target = yaml.safe_load(text), entry["target"]
    _known(target, {"kind", "namespace", "name", "labelSelector"}, directory)
    found = [one for one in into if _selects(target, one)]
    if not found or ("name" in target and len(found) > 1):
        raise RenderError(
            f"{directory}: expected a target of one object, or of several without a name, got {len(found)} for {target}"
        )
    if isinstance(patch, dict):
        if patch.get("$patch") != "delete":
            raise RenderError(f"{directory}: expected a JSON patch or $patch: delete, got {patch}")
        into[:] = [one for one in into if one not in found]
        return
    for one in found:
        try:
            made = patched(one, patch)
        except PatchError as error:
            raise RenderError(f"{directory}: {error}") from error
        one.clear()
        one.update(made)


def _selects(target: Object, one: Object) -> bool:
    labels = {f"{label}={value}" for label, value in one["metadata"].get("labels", {}).items()}
    by_name = {field: value for field, value in target.items() if field != "labelSelector"}
    named = by_name.items() <= dict(zip(("kind", "namespace", "name"), identity(one), strict=True)).items()
    return named and target.get("labelSelector", "") in {"", *labels}


def _label(into: list[Object], entry: Object) -> None:
    _known(entry, {"pairs", "includeTemplates"}, "labels")
    for one in into:
        one["metadata"].setdefault("labels", {}).update(entry["pairs"])
        template = pod_template(one) if entry["includeTemplates"] else None
        if template is not None:
            template.setdefault("metadata", {}).setdefault("labels", {}).update(entry["pairs"])


def _image(into: list[Object], entry: Object) -> None:
    _known(entry, {"name", "newName", "newTag", "digest"}, "images")
    image = str(entry.get("newName", entry["name"]))
    image += f"@{entry['digest']}" if "digest" in entry else f":{entry['newTag']}"
    for template in filter(None, map(pod_template, into)):
        for container in containers(template):
            if container["image"].partition("@")[0].partition(":")[0] == entry["name"]:
                container["image"] = image


def _known(content: Object, fields: set[str], where: object) -> None:
    if unknown := sorted(content.keys() - fields):
        raise RenderError(f"{where}: not supported here: {', '.join(unknown)}")


def _order(one: Object) -> tuple[int, tuple[str, str, str]]:
    kind = one["kind"]
    if kind in _FIRST:
        return _FIRST.index(kind), identity(one)
    return len(_FIRST) + (kind in _LAST), identity(one)


def _differences(wanted: dict[Path, str]) -> Iterator[str]:
    for file, text in wanted.items():
        if not file.is_file() or file.read_text() != text:
            yield f"{file.relative_to(ROOT)} is out of date: run make manifests"


def main() -> int:
    with_policies = (MANIFESTS / "overlays" / "dra", MANIFESTS / "components" / "lockdown")
    wanted = {
        device_classes.FILE: device_classes.text(),
        admission_digests.FILE: admission_digests.text([one for path in with_policies for one in render(path)]),
        INSTALL: written(render(MANIFESTS)),
    }
    if "--check" not in sys.argv[1:]:
        for file, text in wanted.items():
            file.write_text(text)
        return 0
    problems = list(_differences(wanted))
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
