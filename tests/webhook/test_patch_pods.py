from typing import Any

import msgspec
import pytest

from policies.errors import PolicyError
from policies.pod import Pod
from tests.policies.pods import VGPU, container, granted, limited, mutated, pod, policies
from webhook.patch import escaped, operations

IMAGES = [
    ("tensorflow/serving", {}),
    ("vllm/vllm-openai", {"args": ["--gpu-memory-utilization", "0.9"]}),
    ("pytorch/pytorch:2.10.0", {"env": [{"name": "PYTORCH_ALLOC_CONF", "value": "a:1"}]}),
    ("nvidia/jax", {"env": [{"name": "XLA_CLIENT_MEM_FRACTION", "value": "0.9"}]}),
    ("nvidia/jax", {}),
    ("nvidia/jax", {"env": [{"name": "XLA_PYTHON_CLIENT_MEM_FRACTION", "value": ""}]}),
    ("nvidia/jax", {"env": [{"name": "XLA_CLIENT_MEM_FRACTION", "value": ""}]}),
    ("tensorflow/tensorflow", {}),
    ("cupy/cupy", {"env": [{"name": "CUPY_GPU_MEMORY_LIMIT", "value": "100"}]}),
    ("tritonserver", {"command": ["tritonserver"], "args": ["--backend-config=tensorflow,gpu-memory-fraction=1"]}),
    ("sglang", {"command": ["python", "-m", "sglang.launch_server"]}),
    ("text-generation-inference", {"env": [{"name": "CUDA_MEMORY_FRACTION", "value": "2"}]}),
    ("mxnet/python", {}),
]


def second(on: dict[str, Any], **by: str) -> list[Any]:
    after = mutated(on, policies(**by))
    return operations(msgspec.convert(after, Pod), granted(after, policies(**by)))


@pytest.mark.parametrize(("image", "fields"), IMAGES)
@pytest.mark.parametrize(
    "policy", ["", "strategy: time-slicing", "share: {minimum: '0.1'}\nmemory: {headroom: '0.05'}"]
)
def test_a_second_patch_of_a_frameworks_settings_is_empty(image: str, fields: dict[str, Any], policy: str) -> None:
    assert second(pod("0.25", container(image=image, **fields)), default=policy) == []


def test_a_second_patch_after_a_reference_was_replaced_is_empty() -> None:
    own = [{"name": "XLA_CLIENT_MEM_FRACTION", "valueFrom": {"fieldRef": {"fieldPath": "a"}}}]
    assert second(pod("0.25", container(image="nvidia/jax", env=own))) == []


@pytest.mark.parametrize("share", ["0.15", "0.2", "0.333"])
@pytest.mark.parametrize("strategy", ["mps", "time-slicing"])
@pytest.mark.parametrize("more", ["", "memory: {headroom: '0.02'}", "frameworks: {onConflict: deny}"])
@pytest.mark.parametrize(
    "words",
    [
        {"args": ["m", "--gpu-memory-utilization=$(GPU_SHARE_FRACTION)"]},
        {"command": ["sh", "-c", "vllm serve m --gpu-memory-utilization $(GPU_SHARE_FRACTION)"]},
    ],
)
def test_a_second_patch_after_the_fraction_was_written_out_is_empty(
    share: str, strategy: str, more: str, words: dict[str, Any]
) -> None:
    on = pod(share, container(image="vllm/vllm-openai:v0.33.0", **words))
    by = f"strategy: {strategy}\nallocation: dra\n{more}\n"
    assert second(on, default=by, cluster="handover: [cdi]\n") == []


@pytest.mark.parametrize("quantity", ["0m", "0.0", 0, "0"])
def test_a_request_of_zero_is_raised_to_the_limit(quantity: Any) -> None:
    after = mutated(pod("0.2", container(resources={"requests": {VGPU: quantity}})))
    resources = after["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {VGPU: "2"}, "requests": {VGPU: "2"}}


@pytest.mark.parametrize("quantity", [2, "2", "2000m", 2.0])
def test_a_limit_that_agrees_stays_as_it_is_written(quantity: Any) -> None:
    after = mutated(pod("0.2", limited(quantity=quantity)))
    assert after["spec"]["containers"][0]["resources"]["limits"][VGPU] == quantity


def test_a_pod_of_the_aws_plugin_gets_what_is_missing_and_nothing_else() -> None:
    aws = "k8s.amazonaws.com/vgpu"
    mount = {"name": "nvidia-mps", "mountPath": "/tmp/nvidia-mps"}
    one = limited("serving", 2, aws, image="tensorflow/serving:2.3-gpu", volumeMounts=[mount])
    one["args"] = ["--model_name=m", "--per_process_gpu_memory_fraction=0.2"]
    volume = {"name": "nvidia-mps", "hostPath": {"path": "/tmp/nvidia-mps"}}
    before = pod(None, one, hostIPC=True, volumes=[volume])
    before["metadata"] = {"name": "aws"}
    by = policies(cluster=f"resourceNames: {{mps: {aws}}}")
    after = mutated(before, by)
    note = after["metadata"].pop("annotations")
    assert after["metadata"].pop("labels") == {"gpu-share.dev/shared": "true"}
    assert set(note) == {"gpu-share.dev/grant"}
    assert after["spec"]["volumes"][0]["hostPath"].pop("type") == "Directory"
    assert after["spec"]["containers"][0]["volumeMounts"][0].pop("readOnly") is True
    assert after["spec"]["containers"][0]["resources"].pop("requests") == {aws: "2"}
    assert after == before


@pytest.mark.parametrize(
    "on",
    [
        {"spec": {"containers": [limited()]}},
        {"metadata": {}, "spec": {"containers": [limited()]}},
        {"metadata": {"annotations": None, "labels": None}, "spec": {"containers": [limited()]}},
    ],
)
def test_every_missing_parent_is_made(on: dict[str, Any]) -> None:
    after = mutated(on)
    assert set(after["metadata"]) == {"annotations", "labels"}
    assert second(on) == []


@pytest.mark.parametrize(("key", "step"), [("a/b", "a~1b"), ("~", "~0"), ("~1", "~01"), ("/~", "~1~0"), ("a", "a")])
def test_keys_are_escaped_as_steps_of_a_pointer(key: str, step: str) -> None:
    assert escaped(key) == step


def test_a_toleration_survives_the_api_servers_round_trip() -> None:
    by = policies("placement: {tolerations: [{key: gpu, operator: Equal, value: '', effect: NoSchedule}]}")
    after = mutated(pod("0.2"), by)
    # Go leaves empty texts out when it writes the pod again for the second call.
    after["spec"]["tolerations"] = [
        {key: value for key, value in one.items() if value != ""} for one in after["spec"]["tolerations"]
    ]
    assert len(mutated(after, by)["spec"]["tolerations"]) == 1


def test_the_cluster_file_cannot_have_a_reserved_variable_set() -> None:
    frameworks = "frameworks: [{name: x, source: s, constants: [{variable: GPU_SHARE_FRACTION, value: a}]}]"
    with pytest.raises(PolicyError, match="GPU_SHARE_FRACTION"):
        policies(cluster=frameworks)


def test_several_settings_in_one_variable_are_one_operation() -> None:
    own = [
        {
            "name": "ARGS",
            "value": "--gpu-memory-utilization=0.9 --x --cuda-memory-fraction 0.9, --gpu-memory-utilization 1",
        }
    ]
    on = pod("0.25", container(env=own))
    made = msgspec.to_builtins(operations(msgspec.convert(on, Pod), granted(on, policies("strategy: time-slicing"))))
    (one,) = [operation for operation in made if operation["path"].startswith("/spec/containers/0/env")]
    assert (
        one["value"]["value"]
        == "--gpu-memory-utilization=0.25 --x --cuda-memory-fraction 0.225, --gpu-memory-utilization 0.25"
    )
    assert second(on, default="strategy: time-slicing") == []
