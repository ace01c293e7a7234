"""The examples of docs/examples do what docs/integrations.md says."""

import json
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner

from gpu_share import main
from policies.contract import GRANT_ANNOTATION
from policies.reading.store import load
from tests.docs.operators import Object, pods_of
from tests.docs.pages import ROOT
from tests.manifests.test_objects import NEWEST

EXAMPLES = ROOT / "docs" / "examples"
PAGE = (ROOT / "docs" / "integrations.md").read_text()
QUOTA = "resource-quota.yaml"
# The vGPUs of each container with a share, for each pod.
SHARES: dict[str, list[dict[str, int]]] = {
    "kserve.yaml": [{"kserve-container": 5}],
    "kuberay.yaml": [{}, {"ray-worker": 2}],
    "jupyterhub.yaml": [{}, {"notebook": 2}],
    "kubeflow-notebook.yaml": [{"vision": 2}],
    "argo-workflow.yaml": [{"main": 2}],
}


def read(name: str) -> Object:
    document: Object = yaml.safe_load((EXAMPLES / name).read_text())
    return document


def previewed(pod: Object, namespace: str, directory: Path) -> Object:
    """Return the pod as admitted."""
    (directory / "pod.yaml").write_text(yaml.safe_dump(pod))
    ran = CliRunner().invoke(main, ["preview", "-n", namespace, "-o", "yaml", str(directory / "pod.yaml")])
    assert ran.exit_code == 0, ran.output
    admitted: Object = yaml.safe_load(ran.stdout)
    return admitted


def granted(pod: Object) -> dict[str, int]:
    grant = json.loads(pod["metadata"].get("annotations", {}).get(GRANT_ANNOTATION, '{"containers": {}}'))
    return {name: one["vgpus"] for name, one in grant["containers"].items()}


@pytest.mark.parametrize(("name", "shares"), SHARES.items(), ids=SHARES)
def test_the_pods_of_an_example_get_the_shares_that_the_page_says(
    name: str, shares: list[dict[str, int]], tmp_path: Path
) -> None:
    document = read(name)
    namespace = document.get("metadata", {}).get("namespace", "default")
    assert [granted(previewed(pod, namespace, tmp_path)) for pod in pods_of(document)] == shares


def test_vllm_in_kserve_is_told_its_share_of_the_memory(tmp_path: Path) -> None:
    (pod,) = pods_of(read("kserve.yaml"))
    server, _ = previewed(pod, "team-language", tmp_path)["spec"]["containers"]
    assert server["args"][-1] == "--gpu-memory-utilization=0.48"


def test_the_privileged_init_container_of_jupyterhub_is_what_the_page_switches_off(tmp_path: Path) -> None:
    values = read("jupyterhub.yaml")
    values["singleuser"]["cloudMetadata"]["blockWithIptables"] = True
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(list(pods_of(values))[1]))
    ran = CliRunner().invoke(main, ["preview", str(tmp_path / "pod.yaml")])
    assert ran.exit_code == 1
    assert "denied, PrivilegedContainer" in ran.stdout


def test_kubeflow_leaves_out_what_the_page_says_it_leaves_out() -> None:
    notebook = read("kubeflow-notebook.yaml")
    notebook["metadata"]["annotations"] = {"container.gpu-share.dev/my-notebook": "0.2"}
    (pod,) = pods_of(notebook)
    assert pod["metadata"]["annotations"] == {}
    assert "`notebook`" in PAGE


def test_every_example_is_on_a_page() -> None:
    pages = PAGE + (ROOT / "docs" / "policies.md").read_text()
    files = {path.name for path in EXAMPLES.iterdir() if path.is_file()}
    assert files == {*SHARES, QUOTA}
    assert [file for file in files if f"](examples/{file})" not in pages] == []


def test_the_example_of_a_quota_limits_every_resource_of_ours_in_the_one_way_that_counts() -> None:
    quota = read(QUOTA)
    kubernetes_validate.validate(quota, NEWEST, strict=True)
    names = load(ROOT / "policies" / "files").cluster.resource_names
    assert set(quota["spec"]["hard"]) == {f"requests.{name}" for name in names.values()}
