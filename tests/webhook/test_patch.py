"""What the operations make of a pod, against an oracle that knows nothing of operations."""

import copy
import json
from typing import Any

import jsonpatch
import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.decision import decide
from policies.grant import Grant
from policies.pod import Pod
from policies.policy_set import PolicySet
from tests.policies.pods import GPU, VGPU, policies
from webhook.patch import operations

PIPES = "/tmp/nvidia-mps"
PLACED = """\
placement:
  nodeSelector: {"example.com/gpu.kind": shared}
  tolerations:
  - {key: gpu, operator: Exists}
  - {key: other, operator: Equal, value: x, effect: NoExecute, tolerationSeconds: 0}
  runtimeClassName: nvidia
  schedulerName: packer
"""
STRIP = "environment: {reserved: strip}\n"
POLICIES = {
    "plain": policies(STRIP),
    "node": policies(STRIP + "mps: {attach: node}"),
    "sliced": policies(STRIP + "strategy: time-slicing"),
    "placed": policies(STRIP + PLACED),
    "gpus": policies(STRIP + "share: {whole: gpus, maximum: '8', podMaximum: '8'}"),
    "dra": policies(STRIP + "allocation: dra"),
    "dra-gpus": policies(STRIP + "allocation: dra\nshare: {whole: gpus, maximum: '8', podMaximum: '8'}"),
    "sevenths": policies(STRIP, "vgpusPerGpu: 7\nmps: {pipeDirectory: /run/pipes}"),
}
RESERVED = {"NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY", "GPU_SHARE_FRACTION"}

NAMES = st.sampled_from(["A", "PATH", "CUDA_HOME", *sorted(RESERVED)])
VARIABLES = st.builds(lambda name, value: {"name": name} | value, NAMES, st.sampled_from(
    [{"value": "all"}, {"value": "void"}, {"value": "none"}, {}, {"value": None},
     {"valueFrom": {"fieldRef": {"fieldPath": "a"}}}]
))  # fmt: skip
MOUNTS = st.sampled_from(
    [
        {"name": "data", "mountPath": "/data", "readOnly": True},
        {"name": "pipes", "mountPath": f"{PIPES}/"},
        {"name": "data", "mountPath": "/dev/shm"},
        {"name": "data", "mountPath": "/dev//shm/", "subPath": "a"},
        {"name": "nvidia-mps", "mountPath": PIPES},
        {"name": "nvidia-mps", "mountPath": "/mps", "readOnly": False, "subPath": "a"},
    ]
)
RESOURCES: st.SearchStrategy[dict[str, Any] | None] = st.sampled_from(
    [None, {}, {"limits": None}, {"limits": {}, "requests": {}}, {"limits": {"cpu": 1, "a/b~c": "2"}, "claims": []},
     {"requests": {"cpu": "1"}}, {"requests": None, "limits": {"nvidia.com/gpu": 0}}]
)  # fmt: skip
MAPS: st.SearchStrategy[Any] = st.none() | st.dictionaries(
    st.sampled_from(["a", "x/y", "~", "~1", "example.com/gpu.kind"]), st.just("shared")
)


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings in which each field may be missing."""
    return st.fixed_dictionaries({}, optional=fields)


CONTAINERS = optional(
    image=st.sampled_from(["app", "", "registry:5000/app@sha256:0"]),
    command=st.none() | st.just(["run"]),
    args=st.none() | st.lists(st.sampled_from(["--a", "b"]), max_size=2),
    env=st.none() | st.lists(VARIABLES, max_size=4),
    resources=RESOURCES,
    volumeMounts=st.none() | st.lists(MOUNTS, max_size=4, unique_by=str),
    securityContext=st.sampled_from([None, {}, {"privileged": False, "runAsUser": 1}]),
    livenessProbe=st.just({"exec": {"command": ["x"]}}),
)
VOLUMES = st.sampled_from(
    [[], [{"name": "data", "emptyDir": {}}], [{"name": "nvidia-mps", "hostPath": {"path": PIPES}}],
     [{"name": "nvidia-mps", "hostPath": {"path": f"{PIPES}/", "type": ""}}]]
)  # fmt: skip
TOLERATIONS = st.lists(
    st.sampled_from(
        [{"key": "gpu", "operator": "Exists"}, {"key": "spot", "operator": "Exists", "effect": "NoExecute"}]
    ),
    max_size=2,
)
SPECS = optional(
    volumes=st.none() | VOLUMES,
    hostIPC=st.none() | st.booleans(),
    hostUsers=st.none() | st.just(True),  # noqa: FBT003
    nodeSelector=MAPS,
    tolerations=st.none() | TOLERATIONS,
    schedulerName=st.sampled_from([None, "", "default-scheduler", "packer"]),
    runtimeClassName=st.sampled_from([None, "nvidia"]),
    restartPolicy=st.just("Never"),
)


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    made = [draw(CONTAINERS) for _ in range(draw(st.integers(1, 5)))]
    named: list[dict[str, Any]] = [{"name": f"c{number}", **one} for number, one in enumerate(made)]
    first = draw(st.integers(0, len(named) - 1))
    for one in named[:first]:
        one["restartPolicy"] = draw(st.sampled_from(["Always", None]))
    spec = draw(SPECS) | {"containers": named[first:]}
    if first or draw(st.booleans()):
        spec["initContainers"] = named[:first] or draw(st.sampled_from([None, []]))
    sizes = draw(st.sampled_from([["", "", "0.1", "0.15"], ["", "1"], ["", "", "1", "0.1"]]))
    asked = {one["name"]: draw(st.sampled_from(sizes)) for one in named}
    annotations = {f"container.gpu-share.dev/{name}": share for name, share in asked.items() if share}
    if not annotations:
        annotations["gpu-share"] = draw(st.sampled_from(["0.25", "1"]))
    metadata = {"annotations": annotations | (draw(MAPS) or {})} | draw(
        optional(name=st.just("p"), labels=MAPS, generateName=st.just("p-"), ownerReferences=st.just([]))
    )
    if draw(st.booleans()) and list(annotations) == ["gpu-share"]:
        whole = draw(st.sampled_from([{VGPU: "10"}, {GPU: "1"}, {GPU: "1", VGPU: "0"}]))
        spec["containers"][0]["resources"] = {"limits": {VGPU: "3"} if annotations["gpu-share"] == "0.25" else whole}
    written = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    unshared: dict[str, Any] = json.loads(json.dumps(written))  # no part of it stands in two places
    return unshared


def intended(before: dict[str, Any], grant: Grant) -> dict[str, Any]:
    """The granted pod, written down field by field. Settings of frameworks are none of its business."""
    after = copy.deepcopy(before)
    spec, counts = after["spec"], {one.slot.name: str(one.vgpus) for one in grant.containers}
    attach = grant.attaches_in_pod
    everyone = (spec.get("initContainers") or []) + spec["containers"]
    for one in everyone:
        shares = one["name"] in counts
        _close_pipes(one, grant)
        if one.get("env"):
            kept = [v for v in one["env"] if v["name"] not in RESERVED or _hides(v, shares=shares)]
            one["env"] = kept
        if not shares:
            if not any(v["name"] == "NVIDIA_VISIBLE_DEVICES" for v in one.get("env") or ()):
                one["env"] = [*(one.get("env") or []), {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
            continue
        resources = one["resources"] = one.get("resources") or {}
        for field in ("limits", "requests"):
            resources[field] = {**(resources.get(field) or {})}
            if grant.allocation == "dra":
                resources[field].pop(grant.resource, None)
                resources[field][_sized(grant, int(counts[one["name"]]))] = "1"
            else:
                resources[field].setdefault(grant.resource, counts[one["name"]])
        if grant.strategy == "mps" and one.get("volumeMounts"):
            one["volumeMounts"] = [mount for mount in one["volumeMounts"] if "shm" not in mount["mountPath"]]
        mounts = one.get("volumeMounts") or []
        if attach and not any(mount["mountPath"].rstrip("/") == grant.pipe_directory for mount in mounts):
            one["volumeMounts"] = [*mounts, {"name": "nvidia-mps", "mountPath": grant.pipe_directory, "readOnly": True}]
    if attach:
        spec["hostIPC"] = True
        ours = {"name": "nvidia-mps", "hostPath": {"path": grant.pipe_directory, "type": "Directory"}}
        others = [volume for volume in spec.get("volumes") or () if volume["name"] != "nvidia-mps"]
        place = next((i for i, v in enumerate(spec.get("volumes") or ()) if v["name"] == "nvidia-mps"), len(others))
        spec["volumes"] = [*others[:place], ours, *others[place:]]
    _place(spec, grant)
    after.setdefault("metadata", {})
    after["metadata"]["labels"] = {**(after["metadata"].get("labels") or {}), "gpu-share.dev/shared": "true"}
    return after


def _sized(grant: Grant, count: int) -> str:
    kind = {"mps": "", "time-slicing": "-timesliced", "whole": "-whole"}[grant.strategy]
    return f"gpu-share.dev/share-{1000 * count // grant.vgpus_per_gpu}m{kind}"


def _close_pipes(one: dict[str, Any], grant: Grant) -> None:
    for mount in one.get("volumeMounts") or ():
        if grant.attaches_in_pod and mount["name"] == "nvidia-mps":
            mount["readOnly"] = True


def _hides(variable: dict[str, Any], *, shares: bool) -> bool:
    return not shares and variable["name"] == "NVIDIA_VISIBLE_DEVICES" and variable.get("value") == "void"


def _place(spec: dict[str, Any], grant: Grant) -> None:
    placement = grant.policy.policy.placement
    if placement.node_selector:
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **placement.node_selector}
    for toleration in map(msgspec.to_builtins, placement.tolerations):
        if toleration not in (spec.get("tolerations") or ()):
            spec["tolerations"] = [*(spec.get("tolerations") or []), toleration]
    if placement.runtime_class_name:
        spec["runtimeClassName"] = placement.runtime_class_name
    if placement.scheduler_name:
        spec["schedulerName"] = placement.scheduler_name


def patch(before: dict[str, Any], by: PolicySet) -> tuple[dict[str, Any], Grant | None]:
    decision = decide(msgspec.convert(before, Pod), "team", by)
    if not isinstance(decision, Grant):
        return before, None
    made = json.loads(msgspec.json.encode(operations(msgspec.convert(before, Pod), decision)))
    untouched = copy.deepcopy(before)
    patched: dict[str, Any] = jsonpatch.apply_patch(before, made)
    assert before == untouched
    return patched, decision


@given(pods(), st.sampled_from(sorted(POLICIES)))
@settings(deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
def test_the_patched_pod_is_the_intended_pod_and_a_second_patch_is_empty(before: dict[str, Any], name: str) -> None:
    after, grant = patch(before, POLICIES[name])
    if grant is None:
        return
    expected = intended(before, grant)
    note = json.loads(after["metadata"]["annotations"]["gpu-share.dev/grant"])
    expected["metadata"]["annotations"]["gpu-share.dev/grant"] = after["metadata"]["annotations"]["gpu-share.dev/grant"]
    assert after == expected
    by_dra = grant.allocation == "dra"
    assert {key: one["resource" if by_dra else "vgpus"] for key, one in note["containers"].items()} == {
        one.slot.name: one.resource if by_dra else one.vgpus for one in grant.containers
    }
    again, second = patch(after, POLICIES[name])
    assert second is not None
    assert again == after
    assert operations(msgspec.convert(after, Pod), second) == []
