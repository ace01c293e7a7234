"""What an overlay adds and `kubectl apply` of another one leaves in the cluster, the documents remove."""

import re
from collections.abc import Iterable
from pathlib import Path

import yaml

from tests.manifests.render import MANIFESTS, ROOT, identity, render

Identity = tuple[str, str, str]


def added(overlay: str) -> set[Identity]:
    return {*map(identity, render(MANIFESTS / "overlays" / overlay))} - {*map(identity, render(MANIFESTS))}


def held_in(files: Iterable[Path]) -> set[Identity]:
    return {identity(one) for file in files for one in yaml.safe_load_all(file.read_text())}


def test_what_dra_needed_is_removed_on_the_way_back() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    command = re.search(r"^cd (?P<directory>\S+) && kubectl delete (?P<files>(-f \S+ ?)+)$", text, re.MULTILINE)
    assert command is not None
    classes = {one for one in added("dra") if one[0] == "DeviceClass"}
    assert all(name.endswith(".gpu-share.dev") for _, _, name in classes)
    files = [ROOT / command["directory"] / file for file in command["files"].replace("-f ", "").split()]
    assert held_in(files) == added("dra") - classes


def test_what_cert_manager_acts_on_is_removed_on_the_way_back() -> None:
    (name,) = re.findall(r"^kubectl delete -f (\S+)$", (ROOT / "docs" / "install.md").read_text(), re.MULTILINE)
    assert held_in([ROOT / name]) == added("cert-manager")
