"""`preview` says of paths of the node what the API server does, which goes by the namespace's annotation alone."""

from pathlib import Path

import pytest
import yaml

from policies.contract import HOST_PATHS_ANNOTATION
from tests.manifests.admission import BASE, policy, stored
from tests.manifests.render import Object
from tests.webhook.commands import preview

POLICY = policy(BASE)
RULES = "hostPaths: [{path: /data/models}, {path: /scratch, writable: true}]\n"
MOUNTS = [("/data/models", True), ("/data/models/llama", True), ("/scratch", False), ("/scratch", True)]
ANNOTATIONS = [
    "",
    "/data/models,/scratch:rw",
    "/data/models, /scratch:rw",
    "/data,/scratch",
    "/data/models:rw,/scratch:rw",
    "/data/models/llama",
    "/scratch:rw,/data/models/,/other",
    "/data/model,/scratch:ro",
]


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    (tmp_path / "_default.yaml").write_text(RULES)
    return tmp_path


def pod(path: str, *, read_only: bool) -> Object:
    mount = {"name": "d", "mountPath": "/d", "readOnly": read_only}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "team", "annotations": {"gpu-share": "0.2"}},
        "spec": {
            "containers": [{"name": "main", "image": "x", "volumeMounts": [mount]}],
            "volumes": [{"name": "d", "hostPath": {"path": path}}],
        },
    }


def namespace(annotation: str) -> Object:
    metadata = {
        "name": "team",
        "annotations": {HOST_PATHS_ANNOTATION: annotation},
        "labels": {"pod-security.kubernetes.io/enforce": "privileged"},
    }
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


@pytest.mark.parametrize("annotation", ANNOTATIONS)
@pytest.mark.parametrize(("path", "read_only"), MOUNTS)
def test_what_the_namespace_does_not_list_is_denied_as_the_api_server_denies_it(
    rules: Path, path: str, annotation: str, *, read_only: bool
) -> None:
    one, on = pod(path, read_only=read_only), namespace(annotation)
    (granted,) = (
        one
        for one in yaml.safe_load_all(preview(yaml.safe_dump(one), "--policies", rules, "-o", "yaml").stdout)
        if one["kind"] == "Pod"
    )
    denied = POLICY.denials(stored(granted), namespace=on)
    said = preview(yaml.safe_dump_all([on, one]), "--policies", rules, code=int(denied != []))
    assert ("Pod team/p: denied by the API server" in said.stdout) is (denied != []), denied
    command = f"kubectl annotate --overwrite namespace team {HOST_PATHS_ANNOTATION}=/data/models,/scratch:rw"
    assert (command in said.stdout) is (denied != [])
    assert "is not known" not in said.stdout


def test_where_the_namespace_is_not_known_that_is_a_warning(rules: Path) -> None:
    said = preview(yaml.safe_dump(pod("/data/models", read_only=True)), "--policies", rules)
    assert "Pod team/p: granted" in said.stdout
    assert (
        f"Warning: whether the namespace lists /data/models in its annotation {HOST_PATHS_ANNOTATION} is not known"
        in (said.stdout)
    )


def test_in_mode_warn_the_label_for_it_is_enough(rules: Path) -> None:
    (rules / "_default.yaml").write_text(RULES + "mode: warn\n")
    said = preview(yaml.safe_dump(pod("/data/models", read_only=True)), "--policies", rules)
    assert (
        "if it does not, the API server denies the pod unless it has the label gpu-share.dev/mode=warn" in said.stdout
    )


def test_a_granted_pod_of_a_cluster_is_held_against_the_annotation_too(rules: Path) -> None:
    stored_pod = pod("/data/models", read_only=True)
    stored_pod["metadata"]["uid"] = "5f3c"
    for annotation, code in (("", 1), ("/data/models", 0)):
        text = yaml.safe_dump_all([namespace(annotation), stored_pod])
        assert ("denied by the API server" in preview(text, "--policies", rules, code=code).stdout) is (code == 1)
