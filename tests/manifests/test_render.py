import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.manifests.render import (
    INSTALL,
    MANIFESTS,
    OVERLAYS,
    ROOT,
    RenderError,
    containers,
    identity,
    pod_template,
    render,
)
from tests.manifests.yaml_file import written

EVERY = pytest.mark.parametrize("folder", [MANIFESTS, *OVERLAYS], ids=lambda folder: folder.name)
KUBECTL = shutil.which("kubectl")


@EVERY
@pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl here to compare with")
def test_kubectl_builds_the_same(folder: Path) -> None:
    built = subprocess.run([str(KUBECTL), "kustomize", str(folder)], capture_output=True, text=True, check=True)
    assert not built.stderr
    objects = {identity(one): one for one in yaml.safe_load_all(built.stdout)}
    assert objects == {identity(one): one for one in render(folder)}


def test_the_one_file_is_what_the_folders_say() -> None:
    assert INSTALL.read_text() == written(render(MANIFESTS)), "run make manifests"


def test_the_one_file_reads_back_as_the_same_objects() -> None:
    assert list(yaml.safe_load_all(INSTALL.read_text())) == render(MANIFESTS)


@EVERY
def test_no_two_objects_clash(folder: Path) -> None:
    counted = Counter(identity(one) for one in render(folder))
    assert {name for name, count in counted.items() if count > 1} == set()


@EVERY
def test_the_namespace_comes_first_and_the_webhook_last(folder: Path) -> None:
    kinds = [one["kind"] for one in render(folder)]
    assert (kinds[0], kinds[-1]) == ("Namespace", "MutatingWebhookConfiguration")


def test_the_overlays_are_those_of_the_documents() -> None:
    assert {folder.name for folder in OVERLAYS} == {"aws-resource", "cdi", "cert-manager", "simulated"}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The kustomization that docs/install.md proposes, in a folder of its own."""
    text = (ROOT / "docs" / "install.md").read_text()
    (example,) = re.findall(r"```yaml\n(# kustomization.yaml\n.*?)```", text, re.DOTALL)
    (tmp_path / "gpu-share").symlink_to(ROOT)
    (tmp_path / "kustomization.yaml").write_text(example)
    for name in ("_cluster", "_default", "team-vision"):
        (tmp_path / f"{name}.yaml").write_text(f"# {name}\n")
    return tmp_path


def test_a_kustomization_of_ones_own_changes_image_and_policies(own: Path) -> None:
    objects = {identity(one): one for one in render(own)}
    data = objects["ConfigMap", "gpu-share", "gpu-share-policies"]["data"]
    assert data == {f"{name}.yaml": f"# {name}\n" for name in ("_cluster", "_default", "team-vision")}
    images = {
        container["image"]
        for template in filter(None, map(pod_template, objects.values()))
        for container in containers(template)
    }
    assert images == {"registry.example.com/gpu-share:0.1.0"}
    for name in ("gpu-share-plugin", "gpu-share-mps"):
        on_nodes = objects["DaemonSet", "gpu-share", name]
        assert on_nodes["spec"]["template"]["spec"]["runtimeClassName"] == "nvidia"


@pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl here to compare with")
def test_kubectl_builds_the_same_of_a_kustomization_of_ones_own(own: Path) -> None:
    built = subprocess.run([str(KUBECTL), "kustomize", str(own)], capture_output=True, text=True, check=True)
    assert {identity(one): one for one in yaml.safe_load_all(built.stdout)} == {
        identity(one): one for one in render(own)
    }


CONFIG_MAP = "{name: one, namespace: a, files: [x], options: {disableNameSuffixHash: true}%s}"


@pytest.mark.parametrize(
    ("kustomization", "said"),
    [
        ("namePrefix: a", "not known here: namePrefix"),
        ("resources: [../outside.yaml]", "no file from outside"),
        ("resources: [..]", "a cycle"),
        ("resources: [x.yaml, x.yaml]", "a second time"),
        ("configMapGenerator: [{name: one, namespace: a, files: [x]}]", "disableNameSuffixHash"),
        (f"configMapGenerator: [{CONFIG_MAP % ', behavior: merge'}]", "there are 0 of it"),
        (f"configMapGenerator: [{CONFIG_MAP % ''}, {CONFIG_MAP % ''}]", "there are 1 of it"),
        ("patches: [{patch: '[]', target: {kind: Pod, name: b}}]", "or all without a name, got 0"),
        ("patches: [{patch: '{$patch: delete}', target: {labelSelector: a=b}}]", "or all without a name, got 0"),
        ("{resources: [x.yaml], patches: [{path: x, target: {kind: Pod}}]}", "expected a list of steps or"),
        ("patches: [{patch: x, target: {kind: Pod}, options: {}}]", "not known here: options"),
        ("labels: [{pairs: {}, includeSelectors: true}]", "not known here: includeSelectors"),
    ],
)
def test_what_is_not_known_or_does_not_fit_is_an_error(tmp_path: Path, kustomization: str, said: str) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(kustomization)
    for path in (tmp_path / "outside.yaml", folder / "x.yaml", folder / "x"):
        path.write_text("{kind: Pod, metadata: {name: a}, spec: {containers: []}}")
    with pytest.raises(RenderError, match=said):
        render(folder)


def test_a_patch_can_delete_what_has_a_label_and_leaves_the_rest(tmp_path: Path) -> None:
    deletion = "{patch: '{$patch: delete}', target: {kind: Pod, labelSelector: a=b}}"
    (tmp_path / "kustomization.yaml").write_text(f"resources: [x.yaml]\npatches: [{deletion}]")
    labelled = {"one": "{labels: {a: b}, name: one}", "two": "{labels: {a: c}, name: two}", "three": "{name: three}"}
    pods = [f"{{kind: Pod, metadata: {metadata}}}" for metadata in labelled.values()]
    (tmp_path / "x.yaml").write_text("\n---\n".join([*pods, "{kind: Job, metadata: {labels: {a: b}, name: four}}"]))
    assert {one["metadata"]["name"] for one in render(tmp_path)} == {"two", "three", "four"}


def test_a_folder_without_a_kustomization_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RenderError, match="expected one kustomization, got 0"):
        render(tmp_path)


def test_a_digest_takes_the_place_of_the_tag(tmp_path: Path) -> None:
    image = "{name: app, newName: registry.example/app, digest: 'sha256:0'}"
    (tmp_path / "kustomization.yaml").write_text(f"resources: [job.yaml]\nimages: [{image}]")
    containers = "[{name: a, image: app}, {name: b, image: 'app:1'}, {name: c, image: other}]"
    job = f"{{kind: Job, metadata: {{name: a}}, spec: {{template: {{spec: {{containers: {containers}}}}}}}}}"
    (tmp_path / "job.yaml").write_text(job)
    (one,) = render(tmp_path)
    images = [container["image"] for container in one["spec"]["template"]["spec"]["containers"]]
    assert images == ["registry.example/app@sha256:0", "registry.example/app@sha256:0", "other"]
