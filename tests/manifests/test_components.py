"""The parts that a kustomization of one's own can add."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.manifests.render import MANIFESTS, ROOT, Object, identity, render, templates
from tests.manifests.test_render import KUBECTL

CLIENT = "nvidia.com/gpu.deploy.client"


@pytest.fixture
def with_gpu_operator(tmp_path: Path) -> Path:
    """Return a kustomization that adds the component for the GPU Operator, and has a DaemonSet of its own."""
    (tmp_path / "gpu-share").symlink_to(ROOT)
    other = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "other", "namespace": "other"},
        "spec": {"template": {"spec": {"containers": []}}},
    }
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(other))
    kustomization = {
        "resources": ["gpu-share/manifests", "other.yaml"],
        "components": ["gpu-share/manifests/components/gpu-operator"],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return tmp_path


def selectors(objects: list[Object]) -> dict[str, object]:
    return {
        name[2]: template["spec"].pop("nodeSelector", None)
        for name, template in templates(objects).items()
        if name[0] == "DaemonSet"
    }


def toolkit(objects: list[Object]) -> dict[str, str]:
    """Give the path of the node at which the plugin reads the settings of NVIDIA's toolkit."""
    (plugin,) = (template for name, template in templates(objects).items() if name[2] == "gpu-share-plugin")
    (volume,) = (one for one in plugin["spec"]["volumes"] if one["name"] == "toolkit")
    path: dict[str, str] = volume["hostPath"]
    return path


def test_the_gpu_operator_takes_the_node_pods_away_while_it_replaces_the_driver(with_gpu_operator: Path) -> None:
    plain, added = render(MANIFESTS), render(with_gpu_operator)
    of_plain = {"gpu-share.dev/node": "true"}
    of_added = of_plain | {CLIENT: "true"}
    assert selectors(plain) == {"gpu-share-plugin": of_plain, "gpu-share-mps": of_plain}
    assert selectors(added) == {"gpu-share-plugin": of_added, "gpu-share-mps": of_added, "other": None}
    assert toolkit(plain) == {"path": "/etc/nvidia-container-runtime", "type": "DirectoryOrCreate"}
    assert toolkit(added)["path"] == "/usr/local/nvidia/toolkit/.config/nvidia-container-runtime"
    toolkit(added)["path"] = toolkit(plain)["path"]
    assert [one for one in added if identity(one)[2] != "other"] == plain


@pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl here to compare with")
def test_kubectl_builds_the_same_with_a_component(with_gpu_operator: Path) -> None:
    command = [str(KUBECTL), "kustomize", str(with_gpu_operator)]
    built = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert {identity(one): one for one in yaml.safe_load_all(built)} == {
        identity(one): one for one in render(with_gpu_operator)
    }


def test_the_plugin_sees_mig_instances_that_come_later_and_may_do_no_more_than_that(tmp_path: Path) -> None:
    (tmp_path / "gpu-share").symlink_to(ROOT)
    kustomization = {"resources": ["gpu-share/manifests"], "components": ["gpu-share/manifests/components/mig"]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    plain, added = render(MANIFESTS), render(tmp_path)
    changed = [(before, after) for before, after in zip(plain, added, strict=True) if before != after]
    ((before, after),) = changed
    assert identity(after)[2] == "gpu-share-plugin"
    (container,) = after["spec"]["template"]["spec"]["containers"]
    assert container["env"].pop() == {"name": "NVIDIA_MIG_MONITOR_DEVICES", "value": "all"}
    assert container["securityContext"]["capabilities"].pop("add") == ["SYS_ADMIN"]
    assert after == before


def test_for_a_strict_toolkit_the_plugin_has_sys_admin_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "gpu-share").symlink_to(ROOT)
    component = "gpu-share/manifests/components/strict-toolkit"
    kustomization = {"resources": ["gpu-share/manifests"], "components": [component]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    changed = [(one, other) for one, other in zip(render(MANIFESTS), render(tmp_path), strict=True) if one != other]
    ((before, after),) = changed
    assert identity(after)[2] == "gpu-share-plugin"
    (container,) = after["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"]["capabilities"].pop("add") == ["SYS_ADMIN"]
    assert after == before


@pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl here, and its targets are patterns")
def test_a_namespace_that_is_exempt_from_the_lockdown_is_exempt_from_nothing_else(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "security.md").read_text()
    (patches,) = (block for block in re.findall("```yaml\n(.*?)```", page, re.DOTALL) if "value: monitoring" in block)
    kustomization = {"resources": ["gpu-share/manifests"], "components": ["gpu-share/manifests/components/lockdown"]}
    (tmp_path / "gpu-share").symlink_to(ROOT)
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization) + patches)
    command = [str(KUBECTL), "kustomize", str(tmp_path)]
    built = yaml.safe_load_all(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    exempt = {
        one["metadata"]["name"]
        for one in built
        if one["kind"] == "ValidatingAdmissionPolicy"
        and "monitoring" in one["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"][0]["values"]
    }
    assert exempt == {"gpu-share-lockdown", "gpu-share-lockdown-claims"}


@pytest.mark.parametrize("component", sorted((MANIFESTS / "components").iterdir()), ids=lambda path: path.name)
def test_every_component_is_in_the_documents(component: Path) -> None:
    assert f"manifests/components/{component.name}" in (ROOT / "docs" / "install.md").read_text()
