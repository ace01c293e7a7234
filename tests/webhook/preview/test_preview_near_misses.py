"""A key that is almost ours asks for nothing, and preview says what was meant; other people's keys are left alone."""

import json

import pytest

from policies.contract import OTHER_SHARE_ANNOTATIONS
from tests.policies.pods import pod
from tests.webhook.commands import preview
from webhook.preview.near_misses import meant

SHARE, ALIAS, FRAMEWORK = "gpu-share", "gpu-share.dev/share", "gpu-share.dev/framework"
DEVICE = "gpu-share.dev/device"
EVERY = [SHARE, ALIAS, FRAMEWORK, DEVICE, "container.gpu-share.dev/a", "framework.gpu-share.dev/a"]


@pytest.mark.parametrize(
    ("key", "known"),
    [
        ("GPU-share", SHARE),
        ("gpu_share", SHARE),
        ("GPU_SHARE", SHARE),
        ("gpushare", SHARE),
        ("gpuShare", SHARE),
        ("gpu-shares", SHARE),
        ("gpu.share", SHARE),
        ("gpu-share.dev/gpu", SHARE),
        ("gpu-share.dev/vgpu", SHARE),
        ("gpu-share.dev/gpu-share", SHARE),
        ("gpu-share.dev/gpu_share", SHARE),
        ("gpu-share.dev/fraction", SHARE),
        ("gpu-share.dev/Share", ALIAS),
        ("gpu-share.dev/shares", ALIAS),
        ("gpu_share.dev/share", ALIAS),
        ("gpushare.dev/share", ALIAS),
        ("gpu-share.io/share", ALIAS),
        ("gpu-share.com/share", ALIAS),
        ("gpu-share.dev/frameworks", FRAMEWORK),
        ("gpu-share.dev/Framework", FRAMEWORK),
        ("gpu-share.dev/container", "container.gpu-share.dev/<container>"),
        ("containers.gpu-share.dev/main", "container.gpu-share.dev/main"),
        ("Container.gpu-share.dev/main", "container.gpu-share.dev/main"),
        ("container.gpushare.dev/main", "container.gpu-share.dev/main"),
        ("frameworks.gpu-share.dev/main", "framework.gpu-share.dev/main"),
    ],
)
def test_what_was_meant_is_said(key: str, known: str) -> None:
    on = pod(None, annotations={key: "0.2"})
    said = f"Warning: the annotation {key} means nothing to gpu-share: did you mean the annotation {known}?"
    assert said in preview(json.dumps(on)).stdout


def test_a_key_of_our_domain_that_is_like_none_of_ours_is_told_all_of_them() -> None:
    text = preview(json.dumps(pod(None, annotations={"gpu-share.dev/colour": "red"}))).stdout
    assert "did you mean the annotation gpu-share.dev/share or gpu-share.dev/framework or gpu-share.dev/device" in text


@pytest.mark.parametrize("key", EVERY)
def test_a_label_is_no_request(key: str) -> None:
    on = pod(None)
    on["metadata"]["labels"] = {key: "0.2"}
    text = preview(json.dumps(on)).stdout
    assert f"Warning: {key} is a label here, and is read as an annotation only: write it below annotations." in text


def test_a_label_that_is_almost_ours_is_said_too() -> None:
    on = pod(None)
    on["metadata"]["labels"] = {"gpu_share": "0.2"}
    said = "the label gpu_share means nothing to gpu-share: did you mean the annotation gpu-share?"
    assert said in preview(json.dumps(on)).stdout


@pytest.mark.parametrize("field", ["annotations", "labels"])
def test_they_are_found_on_the_object_of_a_template_too(field: str) -> None:
    on = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {field: {"gpu_share": "0.2"}}}
    template = {"metadata": {}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    assert "gpu_share means nothing" in preview(json.dumps({**on, "spec": {"template": template}})).stdout


@pytest.mark.parametrize("key", [*EVERY, "gpu-share.dev/grant"])
def test_an_annotation_on_the_object_instead_of_its_template_is_said(key: str) -> None:
    on = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"annotations": {key: "0.2"}}}
    template = {"spec": {"containers": [{"name": "a", "image": "b"}]}}
    text = preview(json.dumps({**on, "spec": {"template": template}})).stdout
    assert f"Warning: {key} is on the Deployment; move it to its pod template's metadata." in text


@pytest.mark.parametrize("output", ["diff", "yaml", "patch"])
def test_they_go_to_stderr_where_stdout_is_read_by_programs(output: str) -> None:
    result = preview(json.dumps(pod(None, annotations={"gpu_share": "0.2"})), "-o", output)
    assert "warning: the annotation gpu_share means nothing" in result.stderr
    assert "means nothing" not in result.stdout


OTHERS = """\
kubernetes.io/change-cause kubernetes.io/description kubectl.kubernetes.io/last-applied-configuration
kubectl.kubernetes.io/default-container kubectl.kubernetes.io/restartedAt deployment.kubernetes.io/revision
cluster-autoscaler.kubernetes.io/safe-to-evict controller.kubernetes.io/pod-deletion-cost
pod-security.kubernetes.io/enforce scheduler.alpha.kubernetes.io/critical-pod seccomp.security.alpha.kubernetes.io/pod
container.apparmor.security.beta.kubernetes.io/main container.seccomp.security.alpha.kubernetes.io/main
prometheus.io/scrape prometheus.io/port prometheus.io/path sidecar.istio.io/inject proxy.istio.io/config
traffic.sidecar.istio.io/includeInboundPorts linkerd.io/inject vault.hashicorp.com/agent-inject
vault.hashicorp.com/role consul.hashicorp.com/connect-inject iam.amazonaws.com/role eks.amazonaws.com/role-arn
iam.gke.io/gcp-service-account gke-gcsfuse/volumes cni.projectcalico.org/podIP k8s.v1.cni.cncf.io/networks
cert-manager.io/cluster-issuer nginx.ingress.kubernetes.io/rewrite-target argocd.argoproj.io/sync-wave
argocd.argoproj.io/hook helm.sh/hook helm.sh/resource-policy meta.helm.sh/release-name checksum/config
reloader.stakater.com/auto fluxcd.io/automated kustomize.toolkit.fluxcd.io/prune app.kubernetes.io/name
app.kubernetes.io/managed-by autoscaling.knative.dev/minScale serving.kserve.io/deploymentMode
queue.kueue.x-k8s.io/queue-name ray.io/gcs-ft-enabled scheduling.volcano.sh/queue-name
nvidia.com/gpu.present nvidia.com/gpu.sharing-strategy nvidia.com/mps.capable nvidia.com/vgpu.present
nvidia.com/gpu-driver-upgrade-state nvidia.com/use-gputype aliyun.com/gpu-mem aliyun.com/gpu-count gpushare.com/x
scheduler.framework.gpushare.allocation gpu-fraction gpu-memory gpu-type gpu-product gpu-count gpu gpus share shares
framework accelerator run.ai/gpu hami.io/gpu-scheduler-policy 4pd.io/vgpu-node k8s.amazonaws.com/accelerator
volcano.sh/vgpu-mode elasticgpu.io/gpu-container kai.scheduler/queue cloud.google.com/gke-gpu-sharing-strategy
cloud.google.com/gke-max-shared-clients-per-gpu kubeshare/gpu_request kubeshare/gpu_limit project-hami.io/x
"""


def test_other_peoples_keys_are_never_said_anything_of() -> None:
    keys = OTHERS.split()
    assert len(keys) > 70
    assert [key for key in keys if meant(key) is not None] == []
    theirs = dict.fromkeys(keys, "x") | {"kubectl.kubernetes.io/default-container": "main"}
    # Requests of another scheduler are denied beside a share, by their exact names.
    on = pod("0.2", annotations={key: text for key, text in theirs.items() if key not in OTHER_SHARE_ANNOTATIONS})
    on["metadata"]["labels"] = dict.fromkeys(keys, "x")
    assert "Warning" not in preview(json.dumps(on)).stdout


def test_what_the_webhook_writes_and_what_namespaces_and_nodes_carry_is_ours() -> None:
    on = pod("0.2", annotations={"gpu-share.dev/grant": "{}"})
    on["metadata"]["labels"] = {
        "gpu-share.dev/shared": "true",
        "gpu-share.dev/node": "true",
        "gpu-share.dev/mode": "warn",
    }
    assert "means nothing" not in preview(json.dumps(on)).stdout
