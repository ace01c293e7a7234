"""`preview --cluster` judges by `_cluster.yaml` too, which is in a ConfigMap of its own, or not at all."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.manifests.render import MANIFESTS, render
from tests.webhook.commands import POD, preview

LIMITED = POD.replace('gpu-share: "0.2"', 'gpu-share: "0.1"')
POLICIES = {"data": {"_default.yaml": 'share:\n  maximum: "0.1"\n'}}
CLUSTER = {"data": {"_cluster.yaml": "resourceNames: {mps: example.com/vgpu}\n"}}


def shipped_deployment(*renamed: str) -> tuple[dict[str, Any], list[str]]:
    """Give the webhook's Deployment as the manifests have it, and the ConfigMaps of its volume, maybe renamed."""
    deployment = next(
        one
        for one in render(MANIFESTS)
        if (one["kind"], one["metadata"]["name"]) == ("Deployment", "gpu-share-webhook")
    )
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    sources = next(one for one in volumes if one["name"] == "policies")["projected"]["sources"]
    for one, name in zip(sources, renamed, strict=False):
        one["configMap"]["name"] = name
    return deployment, [one["configMap"]["name"] for one in sources]


@pytest.mark.parametrize("renamed", [(), ("gpu-share-policies", "gpu-share-cluster-7h2d")])
def test_the_policies_are_those_of_all_config_maps_that_the_webhook_reads(
    answering: Callable[[dict[str, object]], None], renamed: tuple[str, ...]
) -> None:
    deployment, names = shipped_deployment(*renamed)
    answers = {names[0]: POLICIES, names[1]: CLUSTER}
    answering({"deployment": deployment, **answers})
    first, *rest = preview(POD, "--cluster", code=1).stdout.splitlines()
    assert first == f"Policies: ConfigMap gpu-share/{names[0]} and {names[1]} of the cluster, context kind-a"
    assert any("at most 0.1 is allowed" in line for line in rest)
    limited = preview(LIMITED, "--cluster").stdout
    assert "1 x example.com/vgpu" in limited


FORBIDDEN = (
    'Error from server (Forbidden): deployments.apps "gpu-share-webhook" is forbidden: User "dev" cannot get resource '
    '"deployments" in API group "apps" in the namespace "gpu-share"'
)


@pytest.mark.parametrize("deployment", [FORBIDDEN, {}], ids=["forbidden", "missing"])
def test_the_cluster_file_counts_where_the_webhook_is_not_to_be_seen(
    answering: Callable[[dict[str, object]], None], deployment: object
) -> None:
    _, (policies, cluster) = shipped_deployment()
    answers = {policies: POLICIES, cluster: CLUSTER}
    answering(({"deployment": deployment} if deployment else {}) | answers)
    made = preview(LIMITED, "--cluster")
    text = made.stdout
    assert text.startswith("Policies: ConfigMap gpu-share/gpu-share-policies and gpu-share-cluster of the cluster")
    assert "1 x example.com/vgpu" in text
    told = (
        "gpu-share: warning: Deployment gpu-share/gpu-share-webhook may not be read, which names further ConfigMaps: "
    )
    assert made.stderr.startswith(told) if deployment else made.stderr == ""


@pytest.mark.parametrize("output", ["yaml", "diff", "patch"])
def test_that_the_webhook_is_not_to_be_seen_is_one_line_after_whose_policies_were_read(
    answering: Callable[[dict[str, object]], None], output: str
) -> None:
    _, (policies, cluster) = shipped_deployment()
    answering({"deployment": FORBIDDEN, policies: POLICIES, cluster: CLUSTER})
    first, *others = preview(LIMITED, "--cluster", "-o", output).stderr.splitlines()
    assert first.startswith("gpu-share: policies: ConfigMap gpu-share/gpu-share-policies and gpu-share-cluster of the")
    assert ["gpu-share-webhook may not be read" in line for line in others].count(True) == 1


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (
            {"deployment": "Unable to connect to the server: net/http: request canceled (Client.Timeout exceeded)"},
            "kubectl could not read Deployment gpu-share/gpu-share-webhook (Unable to connect to the server",
        ),
        (
            {"gpu-share-policies": POLICIES, "gpu-share-cluster": "Error from server (NotFound): none"},
            "kubectl could not read ConfigMap gpu-share/gpu-share-cluster (Error from server (NotFound): none): check",
        ),
        (
            {"deployment": {"spec": {}}},
            "Deployment gpu-share/gpu-share-webhook has no volume policies that is made of ConfigMaps alone",
        ),
    ],
    ids=["timeout", "no cluster file", "another webhook"],
)
def test_nothing_is_judged_without_the_cluster_file(
    answering: Callable[[dict[str, object]], None], answers: dict[str, object], words: str
) -> None:
    answering({**answers, "gpu-share-policies": POLICIES})
    result = preview(LIMITED, "--cluster", code=2)
    assert result.stdout == ""
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("renamed", [(), ("gpu-share-policies", "gpu-share-cluster-7h2d")])
def test_a_mistake_is_said_of_the_config_map_that_has_the_file(
    answering: Callable[[dict[str, object]], None], renamed: tuple[str, ...]
) -> None:
    deployment, names = shipped_deployment(*renamed)
    broken = {"data": {"_cluster.yaml": "vgpusPerGpu: 0\n"}}
    answering({"deployment": deployment, names[0]: POLICIES, names[1]: broken})
    told = preview(POD, "--cluster", code=2).stderr
    assert f"--cluster: ConfigMap gpu-share/{names[1]}/_cluster.yaml:1: vgpusPerGpu: expected" in told


def test_of_two_files_of_one_name_the_mistake_is_in_the_last(
    answering: Callable[[dict[str, object]], None],
) -> None:
    deployment, names = shipped_deployment()
    broken = {"data": {"_default.yaml": "share:\n  maximum: 7\n"}}
    answering({"deployment": deployment, names[0]: POLICIES, names[1]: broken})
    told = preview(POD, "--cluster", code=2).stderr
    assert f"--cluster: ConfigMap gpu-share/{names[1]}/_default.yaml:2: share.maximum: expected" in told
