"""For each field of a policy file, two values and a pod on which the difference shows."""

from typing import Any, NamedTuple

from tests.policies.pods import container, pod

FIFTH = pod("0.2")
TENSORFLOW = pod("0.25", container(image="tensorflow/serving"))
SCRATCH = {"name": "v", "emptyDir": {}}
MODELS = pod(
    "0.2",
    container(volumeMounts=[{"name": "models", "mountPath": "/models"}]),
    volumes=[{"name": "models", "hostPath": {"path": "/data"}}],
)
OWN = pod("0.2", container(image="registry/own:2.10"))


class Observed(NamedTuple):
    """Two values of a field, a pod that is treated differently, and what stands beside the field in its file."""

    first: Any
    second: Any
    on: dict[str, Any] = FIFTH
    beside: dict[str, Any] = {}  # noqa: RUF012 - never changed
    default: str = ""  # what `_default.yaml` says
    cluster: str = ""  # what `_cluster.yaml` says


def _toleration(first: Any, second: Any, **beside: Any) -> Observed:
    return Observed(first, second, beside={"placement": {"tolerations": [{"key": "a", **beside}]}})


def _node(first: Any, second: Any) -> Observed:
    return Observed(first, second, beside={"nodes": [{"offer": "whole"}]})


def _framework(first: Any, second: Any, on: dict[str, Any] = OWN, **beside: Any) -> Observed:
    entry = {"name": "own", "source": "https://example.com", "images": ["own"], **beside}
    return Observed(first, second, on, {"frameworks": [entry]})


def _memory(first: Any, second: Any, on: dict[str, Any] = OWN, spelling: Any = None, **beside: Any) -> Observed:
    return _framework(first, second, on, memory={"spellings": [spelling or {"variable": "A"}], **beside})


def _override(first: Any, second: Any, *own: str, image: str = "app", **override: Any) -> Observed:
    """Under time-slicing, with *own* in the variable A."""
    one = {"source": "https://example.com", **override}
    if "variable" not in one:
        one.setdefault("argument", "--bytes")
    env = [{"name": "A", "value": value} for value in own]
    memory = {"spellings": [{"variable": "B"}], "overriddenBy": [one]}
    entry = {"name": "own", "source": "https://example.com", "memory": memory}
    on = pod("0.2", container(image=image, args=["--by=5"], env=env))
    return Observed(first, second, on, {"frameworks": [entry]}, "strategy: time-slicing")


PARTITIONS = "partitions: {a: [{share: '1', resource: a.b/c}], b: [{share: '1', resource: a.b/d}]}"
POLICY: dict[str, Observed] = {
    "enabled": Observed(first=True, second=False),
    "mode": Observed("enforce", "warn", pod("0,2")),
    "strategy": Observed("mps", "time-slicing"),
    "partition": Observed("a", "b", beside={"strategy": "partition"}, cluster=PARTITIONS),
    "allocation": Observed("device-plugin", "dra"),
    "devices": Observed(["gpu"], ["mig-1g.10gb", "gpu"]),
    "share.minimum": Observed("0.1", "0.3"),
    "share.maximum": Observed("0.5", "0.1"),
    "share.podMaximum": Observed("0.5", "0.1"),
    "share.rounding": Observed("up", "exact", pod("0.25")),
    "share.whole": Observed("vgpus", "gpus", pod("1")),
    "mps.attach": Observed("auto", "node"),
    "mps.sharedMemory": Observed(
        "replace",
        "deny",
        pod("0.2", container(volumeMounts=[{"name": "v", "mountPath": "/dev/shm"}]), volumes=[SCRATCH]),
    ),
    "memory.basis": Observed("requested", "granted", TENSORFLOW),
    "memory.headroom": Observed("0", "0.05", TENSORFLOW),
    "frameworks.detect": Observed(first=True, second=False, on=TENSORFLOW),
    "frameworks.onConflict": Observed(
        "lower", "deny", pod("0.2", container(image="vllm-openai", args=["--gpu-memory-utilization=0.9"]))
    ),
    "frameworks.unread": Observed(
        "deny",
        "warn",
        pod("0.2", container(image="vllm-openai", command=["sh", "-c", "vllm serve m $(cat /x)"])),
        beside={"strategy": "time-slicing"},
    ),
    "environment.reserved": Observed(
        "deny", "strip", pod("0.2", container(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]))
    ),
    "environment.envFrom": Observed(
        "allow", "deny", pod("0.2", container(envFrom=[{"configMapRef": {"name": "settings"}}]))
    ),
    "hostPaths[].path": Observed("/srv", "/data", MODELS),
    "hostPaths[].writable": Observed(first=True, second=False, on=MODELS, beside={"hostPaths": [{"path": "/data"}]}),
    "placement.nodeSelector": Observed({}, {"gpu": "shared"}),
    "placement.tolerations[].key": _toleration("a", "b"),
    "placement.tolerations[].operator": _toleration("Equal", "Exists"),
    "placement.tolerations[].value": _toleration("x", "y"),
    "placement.tolerations[].effect": _toleration("NoSchedule", "NoExecute"),
    "placement.tolerations[].tolerationSeconds": _toleration(1, 2, effect="NoExecute"),
    "placement.runtimeClassName": Observed("nvidia", None),
    "placement.schedulerName": Observed("volcano", None),
}

WHOLE_T4 = {"device": "t4", "node": "other", "offer": "whole"}
OPTION = {"argument": "--memory"}
CLUSTER: dict[str, Observed] = {
    "resourceNames": Observed({"mps": "example.com/a"}, {"mps": "example.com/b"}),
    "vgpusPerGpu": Observed(10, 5),
    "vgpusPerInstance": Observed({"1g.10gb": 6}, {"1g.10gb": 5}, default="devices: [mig-1g.10gb]"),
    "handover": Observed(["cdi"], ["envvar"], pod("0.2", container(envFrom=[{"configMapRef": {"name": "settings"}}]))),
    "mps.pipeDirectory": Observed("/a", "/b"),
    "partitions": Observed(
        {"a": [{"share": "1", "resource": "a.b/c"}]},
        {"a": [{"share": "0.5", "resource": "a.b/d"}]},
        default="strategy: partition\npartition: a",
    ),
    "nodes[].node": _node("n", "m"),
    "nodes[].model": _node("*H200*", "*T4*"),
    "nodes[].indexes": _node([0], [1]),
    "nodes[].offer": _node("whole", "none"),
    "nodes[].mig": _node("shared", "whole"),
    "nodes[].allocation": _node("dra", None),
    "nodes[].device": Observed("t4", "l4", beside={"nodes": [{"vgpusPerGpu": 4}, WHOLE_T4]}, default="devices: [t4]"),
    "nodes[].vgpusPerGpu": Observed(4, 5, beside={"nodes": [{"device": "t4"}]}, default="devices: [t4]"),
    "exemptNamespaces": Observed(["team"], []),
    "frameworks[].name": _framework("own", "other"),
    "frameworks[].images": _framework(["own"], ["other"]),
    "frameworks[].versionImages": _memory(["own"], [], since="2.10"),
    "frameworks[].programs": _framework(["serve"], ["other"], pod("0.2", container(command=["serve"]))),
    "frameworks[].otherPrograms": _framework(
        ["serve other"],
        [],
        pod("0.2", container(command=["serve", "other"])),
        programs=["serve"],
        memory={"spellings": [OPTION]},
    ),
    "frameworks[].optionPrefixes": _memory(
        ["OPT_"], [], pod("0.2", container(env=[{"name": "OPT_mem", "value": "0.9"}])), {"variable": "OPT_MEM"}
    ),
    "frameworks[].imageTakesArguments": _memory(first=True, second=False, spelling=OPTION),
    "frameworks[].memory.of": _memory("total", "free"),
    "frameworks[].memory.ofFree": _memory("0.8", "0.5", of="free"),
    "frameworks[].memory.since": _memory("2.10", "2.11"),
    "frameworks[].memory.needsHeadroom": _memory(first=True, second=False),
    "frameworks[].memory.exclusive": _memory(
        first=True, second=False, spellings=[{"variable": "A"}, {"variable": "B"}]
    ),
    "frameworks[].memory.overriddenBy[].argument": _override("--bytes", "--size"),
    "frameworks[].memory.overriddenBy[].variable": _override("A", "C", variable=None),
    "frameworks[].memory.overriddenBy[].shortest": _override("--by", None, image="own"),
    "frameworks[].memory.overriddenBy[].general": _override(first=True, second=False, argument="--by"),
    "frameworks[].memory.overriddenBy[].begins": _override("b:", "c:", "b:1", variable="A"),
    "frameworks[].memory.overriddenBy[].separator": _override(",", "", "a:1,b:1", variable="A", begins="b:"),
    "frameworks[].memory.overriddenBy[].harmless": _override(["1"], ["2"], "1", variable="A"),
    "frameworks[].memory.overriddenBy[].source": _override("https://example.com/a", "https://example.com/b"),
    "frameworks[].memory.spellings[].argument": _framework("--memory", "--size", memory={"spellings": [{}]}),
    "frameworks[].memory.spellings[].variable": _memory("A", "B"),
    "frameworks[].memory.spellings[].value": _memory("{fraction}", "{percent}"),
    "frameworks[].memory.spellings[].separator": _memory(
        ",",
        "",
        pod("0.2", container(image="own", env=[{"name": "A", "value": "b"}])),
        spelling={"variable": "A", "value": "size:{fraction}"},
    ),
    "frameworks[].memory.spellings[].shortest": _memory(
        "--mem", None, pod("0.2", container(image="own", args=["--mem=0.9"])), spelling=OPTION
    ),
    "frameworks[].constants[].variable": _framework("A", "B", constants=[{"value": "x"}]),
    "frameworks[].constants[].value": _framework("x", "y", constants=[{"variable": "A"}]),
    "frameworks[].constants[].strategies": _framework(
        ["mps"], ["time-slicing"], constants=[{"variable": "A", "value": "x"}]
    ),
    "frameworks[].note": _framework("Fast.", "Slow."),
    "frameworks[].source": _framework("https://example.com/a", "https://example.com/b"),
}
