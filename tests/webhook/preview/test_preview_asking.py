"""Objects that ask for a share by a resource, and in which no pod is found: each is said, and quotas are not."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.webhook.commands import POD, preview, run

VGPU = "gpu-share.dev/vgpu"
LIMITS = {"resources": {"limits": {VGPU: "20"}}}


def of_kind(kind: str, group: str, spec: dict[str, Any]) -> str:
    head = {"apiVersion": f"{group}/v1".removeprefix("/"), "kind": kind, "metadata": {"name": "it"}}
    return yaml.safe_dump({**head, "spec": spec}, sort_keys=False)


ASKING: dict[str, tuple[str, dict[str, Any]]] = {
    "TrainJob": ("trainer.kubeflow.org", {"trainer": {"resourcesPerNode": {"limits": {VGPU: 20}}}}),
    "SparkApplication": ("sparkoperator.k8s.io", {"executor": {"gpu": {"name": VGPU, "quantity": 20}}}),
    "NIMService": ("apps.nvidia.com", {"image": {"repository": "x"}, **LIMITS}),
    "Server": ("example.com", {"nodes": [{"resources": {"requests": {"gpu-share.dev/share-200m": "1"}}}]}),
}
PLACES = {
    "TrainJob": "spec.trainer.resourcesPerNode.limits has gpu-share.dev/vgpu",
    "SparkApplication": "spec.executor.gpu.name has gpu-share.dev/vgpu",
    "NIMService": "spec.resources.limits has gpu-share.dev/vgpu",
    "Server": "spec.nodes[0].resources.requests has gpu-share.dev/share-200m",
}


@pytest.mark.parametrize("kind", ASKING)
@pytest.mark.parametrize("before", ["", f"{POD}---\n"], ids=["alone", "behind a pod"])
def test_an_object_that_asks_by_a_resource_and_has_no_known_pod_is_said(kind: str, before: str) -> None:
    result = preview(before + of_kind(kind, *ASKING[kind]), code=2)
    assert f"{kind} it: {PLACES[kind]}, and no pod is found: name its place" in result.stderr
    assert "No pod" not in result.stdout
    assert ("granted" in result.stdout) == bool(before)


@pytest.mark.parametrize("fields", [LIMITS, {"args": ["--x"]}, {"env": []}, {"ports": []}, {"command": ["x"]}])
def test_a_container_without_an_image_is_one(fields: dict[str, Any]) -> None:
    text = of_kind(
        "LLMInferenceService", "serving.kserve.io", {"template": {"containers": [{"name": "main", **fields}]}}
    )
    stderr = preview(text, code=2).stderr
    assert "spec.template.containers has containers, and where this kind has its pods is not known" in stderr
    assert stderr.endswith("add --pod-path spec.template\n")


@pytest.mark.parametrize(
    ("kind", "group", "spec"),
    [
        ("ResourceQuota", "", {"hard": {f"requests.{VGPU}": "20", VGPU: "20"}}),
        ("LimitRange", "", {"limits": [{"type": "Container", "max": {VGPU: "5"}}]}),
        (
            "ClusterQueue",
            "kueue.x-k8s.io",
            {"resourceGroups": [{"flavors": [{"resources": [{"name": VGPU, "nominalQuota": 20}]}]}]},
        ),
        ("Queue", "scheduling.volcano.sh", {"capability": {VGPU: "20"}}),
        ("NodePool", "karpenter.sh", {"limits": {VGPU: "20"}}),
        ("Tenant", "capsule.clastix.io", {"resourceQuotas": {"items": [{"hard": {VGPU: "20"}}]}}),
        ("VerticalPodAutoscaler", "autoscaling.k8s.io", {"containerPolicies": [{"maxAllowed": {VGPU: "2"}}]}),
        ("PodMetrics", "metrics.k8s.io", {"containers": [{"name": "a", "usage": {VGPU: "2"}, "image": "x"}]}),
        ("Configuration", "config.kueue.x-k8s.io", {"transformations": [{"outputs": {VGPU: "10"}}]}),
        ("DeschedulerPolicy", "descheduler", {"profiles": [{"args": {"thresholds": {VGPU: 20}}}]}),
        ("Assign", "mutations.gatekeeper.sh", {"parameters": {"assign": {"value": {VGPU: "2"}}}}),
        ("NodeFeatureRule", "nfd.k8s-sigs.io", {"rules": [{"name": "r", "extendedResources": {VGPU: "2"}}]}),
        ("FederatedResourceQuota", "policy.karmada.io", {"overall": {VGPU: "10"}}),
        ("PodGroup", "scheduling.run.ai", {"minResources": {VGPU: "2"}}),
        ("ClusterPolicy", "kyverno.io", {"rules": [{"pattern": {"containers": [{"name": "*", **LIMITS}]}}]}),
        ("Server", "example.com", {"resources": {"limits": {VGPU: 0, "cpu": 1, "nvidia.com/gpu": 1}}}),
        ("Server", "example.com", {"containers": [{"name": "a"}, {"url": "b"}], "volumes": [{"name": "a"}]}),
        ("Server", "example.com", {"labels": {VGPU: "present"}}),
    ],
)
def test_who_names_a_resource_of_ours_and_has_no_pods_asks_for_nothing(
    kind: str, group: str, spec: dict[str, Any]
) -> None:
    result = preview(of_kind(kind, group, spec))
    assert (result.stdout, result.stderr) == ("No pod and no pod template here.\n", "")


@pytest.mark.parametrize(("kind", "group"), [("PodGroup", "scheduling.volcano.sh"), ("ClusterPolicy", "kyverno.io")])
def test_an_annotation_of_what_makes_no_pods_asks_for_nothing(kind: str, group: str) -> None:
    annotated = of_kind(kind, group, {"metadata": {"annotations": {"gpu-share": "0.2"}}})
    assert preview(annotated).stderr == ""


def test_what_a_controller_noted_asks_for_nothing() -> None:
    assert preview("apiVersion: example.com/v1\nkind: Server\nstatus: {limits: {gpu-share.dev/vgpu: 2}}").stderr == ""


def test_resources_are_ours_by_the_names_of_the_policies(tmp_path: Path) -> None:
    (tmp_path / "_cluster.yaml").write_text("resourceNames: {mps: example.com/slice}\n")
    (tmp_path / "_default.yaml").write_text("")
    text = of_kind("NIMService", "apps.nvidia.com", {"resources": {"limits": {"example.com/slice": 2}}})
    stderr = run("preview", "-", "--policies", tmp_path, given=text, code=2).stderr
    assert "spec.resources.limits has example.com/slice" in stderr
    assert preview(text).stderr == ""
