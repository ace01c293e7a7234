"""A resource that is almost ours is served by no node, and preview says what was meant; all others are left alone."""

import json
from pathlib import Path

import pytest

from tests.policies.pods import container, limited, pod, policies
from tests.webhook.commands import preview
from webhook.preview.near_resources import meant_resource

VGPU, TIMESLICED, GPU = "gpu-share.dev/vgpu", "gpu-share.dev/vgpu-timesliced", "gpu-share.dev/gpu"
ANNOTATION = "the annotation gpu-share"
ANY = f"{VGPU} or {TIMESLICED} or {GPU}, or {ANNOTATION}"
NODES = "nodes: [{device: t4}, {device: a100-80gb}]"
AWS = "resourceNames: {mps: k8s.amazonaws.com/vgpu, whole: example.com/gpu}"


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("gpu-share.dev/vgpus", VGPU),
        ("gpu-share.dev/VGPU", VGPU),
        ("gpu-share/vgpu", VGPU),
        ("gpushare.dev/vgpu", VGPU),
        ("gpu-share.io/vgpu", VGPU),
        ("gpu_share.dev/vgpu", VGPU),
        ("container.gpu-share.dev/vgpu", VGPU),
        ("gpu-share.dev/gpus", GPU),
        ("gpu-share.dev/vgpu-time-sliced", TIMESLICED),
        ("gpu-share.dev/vgpu_timesliced", TIMESLICED),
        ("gpu-share.dev/timesliced", TIMESLICED),
        ("gpu-share.dev/vgpus-mig-1g.10gb", f"{VGPU}-mig-1g.10gb"),
        ("gpu-share.dev/vgpu-1g.10gb", f"{VGPU}-mig-1g.10gb"),
        ("gpu-share/gpu-mig-1g.10gb.me", f"{GPU}-mig-1g.10gb.me"),
        ("gpu-share.dev/vgpu-t4", f"{VGPU}-model-t4"),
        ("gpu-share.dev/vgpus-model-a100-80gb", f"{VGPU}-model-a100-80gb"),
        ("gpu-share.dev/Share-200m", "gpu-share.dev/share-200m"),
        ("gpu-share.dev/share", ANNOTATION),
        ("gpu-share.dev/gpu-fraction", ANNOTATION),
        ("gpu-share", ANNOTATION),
        ("gpu_share", ANNOTATION),
        ("gpu-share.dev/colour", ANY),
    ],
)
@pytest.mark.parametrize("field", ["limits", "requests"])
def test_the_resource_that_was_meant_is_said(name: str, known: str, field: str, tmp_path: Path) -> None:
    (tmp_path / "_cluster.yaml").write_text(NODES)
    on = pod(None, container("a"), initContainers=[container("b", resources={field: {"cpu": 1, name: 2}})])
    text = preview(json.dumps(on), "--policies", tmp_path).stdout
    assert f'  Warning: the resource {name} of "b" means nothing to gpu-share: did you mean {known}?\n' in text


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("gpu-share.dev/vgpu", "k8s.amazonaws.com/vgpu"),
        ("gpu-share.dev/gpu", "example.com/gpu"),
        ("k8s.amazonaws.com/vgpus", "k8s.amazonaws.com/vgpu"),
        ("example.com/GPU", "example.com/gpu"),
        ("example.com/gpus-t4", None),
        ("k8s.amazonaws.com/gpu", None),
        ("k8s.amazonaws.com/accelerator", None),
        ("example.com/vgpu", None),
        ("example.org/gpu", None),
    ],
)
def test_it_is_one_of_the_names_that_the_cluster_gives_them(name: str, known: str | None) -> None:
    assert meant_resource(name, policies("", AWS).cluster) == known


OURS = f"{VGPU} {TIMESLICED} {GPU} {VGPU}-mig-1g.10gb {GPU}-mig-1g.10gb {TIMESLICED}-model-t4 gpu-share.dev/share-200m"
OTHERS = """\
cpu memory ephemeral-storage hugepages-2Mi gpu gpus vgpu pods nvidia.com/gpu nvidia.com/gpu.shared nvidia.com/vgpu
nvidia.com/mig-1g.10gb nvidia.com/gpumem nvidia.com/gpumem-percentage nvidia.com/gpucores nvidia.com/GA102GL_A10
nvidia.com/GRID_T4-1Q nvidia.com/priority nvidia.com/hostdev amd.com/gpu amd.com/cpx_nps4 gpu.intel.com/i915
gpu.intel.com/xe gpu.intel.com/millicores gpu.intel.com/memory.max habana.ai/gaudi aliyun.com/gpu-mem
aliyun.com/gpu-count aliyun.com/gpu-core.percentage tencent.com/vcuda-core tencent.com/vcuda-memory
volcano.sh/vgpu-number volcano.sh/vgpu-memory volcano.sh/gpu-memory 4pd.io/vgpu elasticgpu.io/gpu-memory
cambricon.com/mlu cambricon.com/vmlu huawei.com/Ascend910 iluvatar.ai/vgpu metax-tech.com/sgpu hygon.com/dcunum
k8s.amazonaws.com/vgpu k8s.amazonaws.com/accelerator vpc.amazonaws.com/pod-eni aws.amazon.com/neuron google.com/tpu
cloud.google.com/gke-gpu rdma/hca_shared_devices_a rdma/ib openshift.io/sriov intel.com/qat github.com/fuse
smarter-devices/fuse devices.kubevirt.io/kvm koordinator.sh/gpu-core koordinator.sh/gpu-memory-ratio kubeshare/gpu
run.ai/gpu kai.scheduler/gpu gpushare.com/gpu squat.ai/video example.com/dongle gpu-manager.io/vgpu
deviceclass.resource.kubernetes.io/gpu.nvidia.com deviceclass.resource.kubernetes.io/share-200m.gpu-share.dev
"""
PARTITIONS = 'partitions: {a: [{share: "1", resource: gpu-share.example/whole}]}'


@pytest.mark.parametrize("cluster", ["", NODES, AWS.replace("example.com/gpu", "gpu-share.dev/gpu")])
def test_resources_of_ours_and_of_others_are_never_said_anything_of(cluster: str) -> None:
    by = policies("", cluster).cluster
    ours = [name for name in OURS.split() if by.is_ours(name)]
    assert len(ours) > 3
    assert [name for name in (*ours, *OTHERS.split()) if meant_resource(name, by) is not None] == []


def test_a_partition_that_the_cluster_names_exists() -> None:
    assert meant_resource("gpu-share.example/whole", policies("", PARTITIONS).cluster) is None
    assert meant_resource("gpu-share.example/whole", policies().cluster) == ANY


def test_none_of_a_resource_asks_for_nothing() -> None:
    assert "Warning" not in preview(json.dumps(pod(None, limited("main", 0, "gpu-share.dev/vgpus")))).stdout


def test_each_container_is_named_once_for_limit_and_request() -> None:
    both = {"limits": {"gpu-share.dev/vgpus": 2}, "requests": {"gpu-share.dev/vgpus": 2}}
    text = preview(json.dumps(pod(None, *(container(name, resources=both) for name in "ab")))).stdout
    assert text.count("means nothing to gpu-share") == 2


@pytest.mark.parametrize("output", ["diff", "yaml", "patch"])
def test_they_go_to_stderr_where_stdout_is_read_by_programs(output: str) -> None:
    result = preview(json.dumps(pod(None, limited("main", 2, "gpu-share.dev/vgpus"))), "-o", output)
    assert "warning: the resource gpu-share.dev/vgpus" in result.stderr
    assert "means nothing" not in result.stdout


def test_a_name_longer_than_any_is_not_looked_at() -> None:
    assert meant_resource(f"gpu-share.dev/{'-' * 1_000_000}", policies().cluster) is None
