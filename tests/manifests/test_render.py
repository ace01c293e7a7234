import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.manifests.admission import BASE
from tests.manifests.installations import each_installation, named, policy_files
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

KUBECTL = shutil.which("kubectl")


@each_installation
@pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl here to compare with")
def test_kubectl_builds_the_same(directory: Path) -> None:
    built = subprocess.run([str(KUBECTL), "kustomize", str(directory)], capture_output=True, text=True, check=True)
    assert not built.stderr
    objects = {identity(one): one for one in yaml.safe_load_all(built.stdout)}
    assert objects == {identity(one): one for one in render(directory)}


def test_install_yaml_is_up_to_date() -> None:
    assert INSTALL.read_text() == written(render(MANIFESTS)), "run make manifests"


def test_install_yaml_reads_back_as_the_same_objects() -> None:
    assert list(yaml.safe_load_all(INSTALL.read_text())) == render(MANIFESTS)


@each_installation
def test_no_two_objects_have_the_same_identity(directory: Path) -> None:
    counted = Counter(identity(one) for one in render(directory))
    assert {name for name, count in counted.items() if count > 1} == set()


@each_installation
def test_the_namespace_comes_first_and_the_webhook_last(directory: Path) -> None:
    kinds = [one["kind"] for one in render(directory)]
    assert (kinds[0], kinds[-1]) == ("Namespace", "MutatingWebhookConfiguration")


@each_installation
def test_every_installation_has_the_annotations_of_the_webhook_configuration_that_the_base_has(directory: Path) -> None:
    has, needed = (
        named("MutatingWebhookConfiguration", "gpu-share", objects)["metadata"]["annotations"]
        for objects in (render(directory), BASE)
    )
    assert "admissions.enforcer/disabled" in needed
    assert has.items() >= needed.items()


def test_the_overlays_are_those_of_the_documents() -> None:
    names = {"aws-resource", "cert-manager", "dra", "dra-simulated", "envvar", "simulated"}
    assert {directory.name for directory in OVERLAYS} == names


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Return a directory with the kustomization that docs/install.md proposes."""
    text = (ROOT / "docs" / "install.md").read_text()
    example, *_ = re.findall(r"```yaml\n(# kustomization.yaml\n.*?)```", text, re.DOTALL)
    (tmp_path / "gpu-share").symlink_to(ROOT)
    (tmp_path / "kustomization.yaml").write_text(example)
    for name in ("_cluster", "_default", "team-vision"):
        (tmp_path / f"{name}.yaml").write_text(f"# {name}\n")
    return tmp_path


def test_a_users_own_kustomization_changes_image_and_policies(own: Path) -> None:
    objects = {identity(one): one for one in render(own)}
    plugin = objects["DaemonSet", "gpu-share", "gpu-share-plugin"]["spec"]["template"]
    files = policy_files(list(objects.values()), plugin)
    assert files == {f"{name}.yaml": f"# {name}\n" for name in ("_cluster", "_default", "team-vision")}
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
def test_kubectl_builds_the_same_from_a_users_own_kustomization(own: Path) -> None:
    built = subprocess.run([str(KUBECTL), "kustomize", str(own)], capture_output=True, text=True, check=True)
    assert {identity(one): one for one in yaml.safe_load_all(built.stdout)} == {
        identity(one): one for one in render(own)
    }


CONFIG_MAP = "{name: one, namespace: a, files: [x], options: {disableNameSuffixHash: true}%s}"


@pytest.mark.parametrize(
    ("kustomization", "said"),
    [
        ("namePrefix: a", "not supported here: namePrefix"),
        ("resources: [../outside.yaml]", "no files outside"),
        ("resources: [..]", "a cycle"),
        ("resources: [x.yaml, x.yaml]", "a second time"),
        (
            "configMapGenerator: [{name: one, namespace: a, files: [x], options: {immutable: true}}]",
            "not supported here: immutable",
        ),
        (
            f"configMapGenerator: [{CONFIG_MAP % ', behavior: merge'}]",
            "expected one ConfigMap one to merge, or none to create, got 0",
        ),
        (f"configMapGenerator: [{CONFIG_MAP % ''}, {CONFIG_MAP % ''}]", "or none to create, got 1"),
        ("patches: [{patch: '[]', target: {kind: Pod, name: b}}]", "or of several without a name, got 0"),
        ("patches: [{patch: '{$patch: delete}', target: {labelSelector: a=b}}]", "or of several without a name, got 0"),
        ("{resources: [x.yaml], patches: [{path: x, target: {kind: Pod}}]}", "expected a JSON patch or"),
        ("patches: [{patch: x, target: {kind: Pod}, options: {}}]", "not supported here: options"),
        (
            "{resources: [x.yaml], patches: [{patch: '[{op: add, path: /spec, value: {}}]', target: {kind: Pod}}]}",
            "/spec is there already",
        ),
        ("labels: [{pairs: {}, includeSelectors: true}]", "not supported here: includeSelectors"),
    ],
)
def test_what_is_unsupported_or_inconsistent_is_an_error(tmp_path: Path, kustomization: str, said: str) -> None:
    directory = tmp_path / "one"
    directory.mkdir()
    (directory / "kustomization.yaml").write_text(kustomization)
    for path in (tmp_path / "outside.yaml", directory / "x.yaml", directory / "x"):
        path.write_text("{kind: Pod, metadata: {name: a}, spec: {containers: []}}")
    with pytest.raises(RenderError, match=said):
        render(directory)


def test_a_patch_can_delete_the_objects_with_a_label_only(tmp_path: Path) -> None:
    deletion = "{patch: '{$patch: delete}', target: {kind: Pod, labelSelector: a=b}}"
    (tmp_path / "kustomization.yaml").write_text(f"resources: [x.yaml]\npatches: [{deletion}]")
    labelled = {"one": "{labels: {a: b}, name: one}", "two": "{labels: {a: c}, name: two}", "three": "{name: three}"}
    pods = [f"{{kind: Pod, metadata: {metadata}}}" for metadata in labelled.values()]
    (tmp_path / "x.yaml").write_text("\n---\n".join([*pods, "{kind: Job, metadata: {labels: {a: b}, name: four}}"]))
    assert {one["metadata"]["name"] for one in render(tmp_path)} == {"two", "three", "four"}


def test_a_directory_without_a_kustomization_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RenderError, match="expected one kustomization file, got 0"):
        render(tmp_path)


def test_a_digest_replaces_the_tag(tmp_path: Path) -> None:
    image = "{name: app, newName: registry.example/app, digest: 'sha256:0'}"
    (tmp_path / "kustomization.yaml").write_text(f"resources: [job.yaml]\nimages: [{image}]")
    containers = "[{name: a, image: app}, {name: b, image: 'app:1'}, {name: c, image: other}]"
    job = f"{{kind: Job, metadata: {{name: a}}, spec: {{template: {{spec: {{containers: {containers}}}}}}}}}"
    (tmp_path / "job.yaml").write_text(job)
    (one,) = render(tmp_path)
    images = [container["image"] for container in one["spec"]["template"]["spec"]["containers"]]
    assert images == ["registry.example/app@sha256:0", "registry.example/app@sha256:0", "other"]
