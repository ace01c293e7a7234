"""Variables that say which GPUs a container sees, or what of them: a pod may not set them itself."""

from typing import Any

import pytest

from tests.policies.pods import (
    container,
    denied,
    environment,
    granted,
    mutated,
    only_container,
    pod,
    policies,
)

RESERVED = [
    "NVIDIA_VISIBLE_DEVICES",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "CUDA_MPS_ANYTHING_NEW",
    "NVIDIA_GPU_MEMORY_LIMIT",
    "GPU_SHARE_FRACTION",
    "GPU_SHARE_MEMORY_MIB",
]
FREE = [
    "NVIDIA_REQUIRE_CUDA",
    "CUDA_HOME",
    "CUDA_LAUNCH_BLOCKING",
    "nvidia_visible_devices",
    "MY_NVIDIA_VISIBLE_DEVICES",
    "GPU_SHARE",
    "NVIDIA_VISIBLE_DEVICES_",
]


def _with(where: str, name: str, **value: Any) -> dict[str, Any]:
    extra = container("extra", env=[{"name": "A", "value": "1"}, {"name": name, **value}, {"name": "Z", "value": "2"}])
    match where:
        case "sharing":
            return pod("0.2", extra | {"name": "main"})
        case "beside":
            return pod("0.2", container(), extra)
        case "init":
            return pod("0.2", initContainers=[extra])
        case _:
            return pod("0.2", initContainers=[extra | {"restartPolicy": "Always"}])


@pytest.mark.parametrize("where", ["sharing", "beside", "init", "sidecar"])
@pytest.mark.parametrize("name", RESERVED)
@pytest.mark.parametrize("value", [{"value": "all"}, {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])
def test_a_reserved_variable_is_denied_or_stripped_wherever_it_stands(
    where: str, name: str, value: dict[str, Any]
) -> None:
    on = _with(where, name, **value)
    deny = denied(on, policies("environment: {reserved: deny}"))
    assert deny.code == "ReservedEnvironment"
    assert name in deny.message
    assert "(_default.yaml:1)" in deny.message

    strip = policies("environment: {reserved: strip}")
    assert any(name in warning and "removed" in warning for warning in granted(on, strip).warnings)
    spec = mutated(on, strip)["spec"]
    for one in spec["containers"] + spec.get("initContainers", []):
        names = [variable["name"] for variable in one.get("env", ())]
        if one["name"] == "extra" and name == "NVIDIA_VISIBLE_DEVICES":
            assert names == ["A", "Z", "NVIDIA_VISIBLE_DEVICES"]
            assert environment(one)["NVIDIA_VISIBLE_DEVICES"] == "void"
        elif one["name"] == "extra":
            assert names == ["A", "Z", "NVIDIA_VISIBLE_DEVICES"]
        else:
            assert name not in names or environment(one)[name] == "void"


@pytest.mark.parametrize("name", FREE)
def test_other_variables_are_free(name: str) -> None:
    on = _with("sharing", name, value="1")
    assert environment(only_container(mutated(on))) == {"A": "1", name: "1", "Z": "2"}


@pytest.mark.parametrize("value", ["void", "none"])
def test_a_container_without_a_share_may_hide_the_gpus_itself(value: str) -> None:
    spec = mutated(_with("beside", "NVIDIA_VISIBLE_DEVICES", value=value))["spec"]
    assert environment(spec["containers"][1])["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert denied(_with("sharing", "NVIDIA_VISIBLE_DEVICES", value=value)).code == "ReservedEnvironment"


def test_several_reserved_variables_are_all_stripped() -> None:
    variables = [{"name": name, "value": "x"} for pair in zip(RESERVED, FREE, strict=False) for name in pair]
    on = pod("0.2", container(env=variables))
    stripped = environment(only_container(mutated(on, policies("environment: {reserved: strip}"))))
    assert list(stripped) == FREE
