"""What docs/migrate.md says of other systems is what the commands do."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from policies.migration.findings import MEANINGS
from policies.migration.report import kustomization
from tests.docs.pages import ROOT
from tests.manifests.test_objects import NEWEST
from tests.policies.migration.configurations import MPS, imported

PAGE = (ROOT / "docs" / "migrate.md").read_text()
EXAMPLES = sorted((ROOT / "docs" / "examples" / "migrate").iterdir())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_valid_and_on_the_page(path: Path) -> None:
    kubernetes_validate.validate(yaml.safe_load(path.read_text()), NEWEST, strict=True)
    assert f"](examples/migrate/{path.name})" in PAGE or f" docs/examples/migrate/{path.name}\n" in PAGE


def test_the_words_of_the_import_are_those_of_the_page() -> None:
    rows = re.findall(r"^\| `([a-z]+)` \| ([^|;]*)[;|]", PAGE, re.MULTILINE)
    assert {word: meaning.strip() for word, meaning in rows if word in MEANINGS} == MEANINGS


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("strategy", ["cdi-cri", "envvar"])
def test_the_kustomization_that_is_printed_sets_the_options_of_the_plugin(strategy: str, tmp_path: Path) -> None:
    flags = f"flags: {{failOnInitError: false, plugin: {{passDeviceSpecs: true, deviceListStrategy: {strategy}}}}}\n"
    made = imported(MPS + flags)
    manifests = os.path.relpath(ROOT / "manifests", tmp_path)
    printed = kustomization(made).replace("gpu-share/manifests", manifests)
    (tmp_path / "kustomization.yaml").write_text(f"resources: [{manifests}]\n{printed}")
    built = subprocess.run(["kubectl", "kustomize", str(tmp_path)], capture_output=True, text=True, check=True)  # noqa: S607
    (plugin,) = [
        one
        for one in yaml.safe_load_all(built.stdout)
        if (one["kind"], one["metadata"]["name"]) == ("DaemonSet", "gpu-share-plugin")
    ]
    env = [(one["name"], one.get("value")) for one in plugin["spec"]["template"]["spec"]["containers"][0]["env"]]
    assert made.options.items() <= dict(env).items()
    assert len({name for name, _ in env}) == len(env)
