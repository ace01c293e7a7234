"""Pods that try to get more than their share, and who stops each."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from policies.contract import RESERVED_VARIABLES
from tests.policies.pods import VGPU, container, limited, pod

PIPES = "/tmp/nvidia-mps"
VLLM = "vllm/vllm-openai:v0.11.0"
GRANT = (
    '{"policy":"_default","strategy":"mps","attach":"pod","resource":"gpu-share.dev/vgpu",'
    '"containers":{"main":{"vgpus":%d,"share":"%s","of":10}}}'
)


@dataclass(frozen=True)
class Attempt:
    """One pod, and what becomes of it."""

    name: str
    pod: dict[str, Any]
    by: Literal["webhook", "policy", "harmless"]
    code: str = ""  # of the webhook's refusal
    says: str = ""  # what stands in the policy's refusal
    webhook_runs: bool = True  # false: it is down, or another one changed the pod after it
    rules: str = ""  # of `_default.yaml`


def _webhook(name: str, code: str, on: dict[str, Any], rules: str = "") -> Attempt:
    return Attempt(name, on, "webhook", code=code, rules=rules)


def _policy(name: str, says: str, on: dict[str, Any]) -> Attempt:
    return Attempt(name, on, "policy", says=says, webhook_runs=False)


def _env(name: str, value: str | None = "all", **source: Any) -> dict[str, Any]:
    return {"name": name, **({} if value is None else {"value": value}), **source}


def _forged(vgpus: int = 2, share: str = "0.2", **changes: Any) -> dict[str, Any]:
    """A pod that looks as if the webhook had granted it."""
    made = pod(
        "0.2", limited("main", str(vgpus), **changes), annotations={"gpu-share.dev/grant": GRANT % (vgpus, share)}
    )
    made["metadata"]["labels"] = {"gpu-share.dev/shared": "true"}
    return made


def corpus() -> list[Attempt]:
    """List every attempt."""
    return [
        *_variables(),
        *_shares(),
        *_requests(),
        *_privileges(),
        *_folders(),
        *_arguments(),
        *_grants(),
    ]


def _variables() -> Iterator[Attempt]:
    code = "ReservedEnvironment"
    others = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "NVIDIA_GPU_MEMORY_LIMIT")
    for name in (*sorted(RESERVED_VARIABLES), *others):
        yield _webhook(f"{name} in env", code, pod("0.2", container(env=[_env(name)])))
    reference = {"valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}
    by_reference = [_env("NVIDIA_VISIBLE_DEVICES", None, **reference)]
    yield _webhook("a reserved variable by reference", code, pod("0.2", container(env=by_reference)))
    init = container("init", env=[_env("NVIDIA_VISIBLE_DEVICES")])
    yield _webhook("a reserved variable in an init container", code, pod("0.2", initContainers=[init]))
    sidecar = init | {"restartPolicy": "Always"}
    yield _webhook("a reserved variable in a sidecar", code, pod("0.2", initContainers=[sidecar]))
    beside = container("beside", env=[_env("NVIDIA_VISIBLE_DEVICES", "0")])
    yield _webhook("a container beside the share that names a GPU", code, pod("0.2", container(), beside))
    twice = [_env("NVIDIA_VISIBLE_DEVICES", "void"), _env("NVIDIA_VISIBLE_DEVICES", "all")]
    yield _webhook("a reserved variable given twice", code, pod("0.2", container(), container("b", env=twice)))
    from_all = container(envFrom=[{"configMapRef": {"name": "mine"}}])
    yield _webhook(
        "variables from a ConfigMap where the policy says deny",
        code,
        pod("0.2", from_all),
        "environment: {envFrom: deny}",
    )
    stripped = pod("0.2", container(env=[_env("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "100")]))
    yield Attempt(
        "a reserved variable where the policy says strip", stripped, "harmless", rules="environment: {reserved: strip}"
    )
    yield _policy(
        "a reserved variable that another webhook adds",
        "decides what it is held to",
        _forged(env=[_env("NVIDIA_VISIBLE_DEVICES")]),
    )
    yield Attempt(
        "an image's own variables in a container beside the share", pod("0.2", container(), container("b")), "harmless"
    )


def _shares() -> Iterator[Attempt]:
    texts = (
        "\u0660.\u0662",
        "0\u00b72",
        "\uff10.\uff12",
        "1e0",
        "1E1",
        "NaN",
        "nan",
        "inf",
        "Infinity",
        "-0.2",
        "+0.2",
        "0x1",
        "0_2",
        " 0.2",
        "0.2 ",
        "0.2\n",
        "0.2000",
        "1.5",
        "0",
        "0%",
        "",
        "1/5",
        "0,2",
        ".2",
        "0.",
        "9" * 30,
        "0.2;1",
        "150%",
    )
    for text in texts:
        yield _webhook(f"the share {text!a}", "ShareMalformed", pod(text))
    yield _webhook("a share of a million GPUs", "ShareAboveMaximum", pod("1000000"))
    yield _webhook("more than the maximum as a percentage", "ShareAboveMaximum", pod("60%"), 'share: {maximum: "0.5"}')
    yield _webhook(
        "less than the minimum, to take a whole vGPU of it", "ShareBelowMinimum", pod("0.01"), 'share: {minimum: "0.1"}'
    )
    both = {"gpu-share": "0.1", "gpu-share.dev/share": "0.9"}
    yield _webhook("two annotations that differ", "ConflictingRequest", pod(None, annotations=both))
    named = {f"container.gpu-share.dev/c{n}": "0.2" for n in range(40)}
    many = [container(f"c{n}") for n in range(40)]
    yield _webhook("forty containers with a fifth each", "PodShareAboveMaximum", pod(None, *many, annotations=named))
    sidecars = [container(f"s{n}", restartPolicy="Always") for n in range(6)]
    theirs = {f"container.gpu-share.dev/s{n}": "0.2" for n in range(6)}
    yield _webhook(
        "sidecars that add up", "PodShareAboveMaximum", pod("0.2", initContainers=sidecars, annotations=theirs)
    )
    yield _webhook(
        "a share for a container that is not there",
        "UnknownContainer",
        pod(None, annotations={"container.gpu-share.dev/x": "0.2"}),
    )
    yield _webhook("a share where there are none", "SharingDisabled", pod("0.2"), "enabled: false")


def _requests() -> Iterator[Attempt]:
    yield _webhook(
        "more vGPUs by limit than allowed",
        "ShareAboveMaximum",
        pod(None, limited("main", "9")),
        'share: {maximum: "0.5"}',
    )
    yield _webhook("a limit that disagrees with the annotation", "ConflictingRequest", pod("0.2", limited("main", "8")))
    yield _webhook(
        "more vGPUs than a GPU has, and not whole GPUs",
        "ShareMalformed",
        pod(None, limited("main", "15")),
        'share: {maximum: "2"}',
    )
    for quantity in ("0.5", "-1", "NaN", "1e999", "2Gi2"):
        yield _webhook(f"the limit {quantity}", "ShareMalformed", pod(None, limited("main", quantity)))
    unequal = container(resources={"limits": {VGPU: "2"}, "requests": {VGPU: "1"}})
    yield _webhook("a request below its limit", "ConflictingRequest", pod(None, unequal))
    yield _webhook(
        "a request without a limit", "ConflictingRequest", pod(None, container(resources={"requests": {VGPU: "2"}}))
    )
    for whole in (
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-1g.5gb",
        "amd.com/gpu",
        "gpu.intel.com/i915",
    ):
        both = container(resources={"limits": {whole: "1"}})
        yield _webhook(f"{whole} beside the share", "ConflictingRequest", pod("0.2", both))
    beside = container("beside", resources={"limits": {"nvidia.com/gpu": "1"}})
    yield _webhook("a whole GPU in the next container", "ConflictingRequest", pod("0.2", container(), beside))
    other = limited("main", "2", "gpu-share.dev/vgpu-timesliced")
    yield _webhook("the resource of another strategy", "ConflictingRequest", pod(None, other))
    yield _policy("a raw limit while the webhook is down", "granted it none", pod(None, limited("main", "2")))
    yield _policy("an annotation while the webhook is down", "granted it none", pod("0.2"))
    yield _policy("a whole GPU that another webhook adds", "never both", _forged_with_whole_gpu())


def _forged_with_whole_gpu() -> dict[str, Any]:
    made = _forged()
    made["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1"
    return made


def _privileges() -> Iterator[Attempt]:
    code = "PrivilegedContainer"
    yield _webhook("a privileged container", code, pod("0.1", container(securityContext={"privileged": True})))
    init = container("init", securityContext={"privileged": True})
    yield _webhook("a privileged init container", code, pod("0.1", initContainers=[init]))
    yield _webhook("hostPID", code, pod("0.1", hostPID=True))
    for capability in ("ALL", "SYS_ADMIN", "cap_sys_admin", "SYS_MODULE", "SYS_RAWIO"):
        added = container(securityContext={"capabilities": {"add": [capability]}})
        yield _webhook(f"the capability {capability}", code, pod("0.1", added))
    yield _webhook("a user namespace with the host's IPC", "HostUsersConflict", pod("0.1", hostUsers=False))
    yield _policy(
        "privileges that another webhook adds", "No share can hold", _forged(securityContext={"privileged": True})
    )
    yield _policy("hostPID that another webhook adds", "hostPID", _with(_forged(), hostPID=True))
    node = _with(_forged(), hostIPC=True)
    node["metadata"]["annotations"]["gpu-share.dev/grant"] = (GRANT % (2, "0.2")).replace('"pod"', '"node"')
    yield _policy("hostIPC that was not granted", "hostIPC", node)


def _with(on: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return on | {"spec": on["spec"] | spec}


def _folders() -> Iterator[Attempt]:
    code = "ConflictingRequest"
    for path in (
        "/dev",
        "/dev/nvidia0",
        "/",
        "/proc",
        "/sys",
        "/run/containerd/containerd.sock",
        "/var/run/docker.sock",
        "/var/lib/kubelet/device-plugins",
        "/var/lib/kubelet/pod-resources",
        f"{PIPES}/GPU-0",
        "/tmp",
        "//dev",
        "/dev/../dev",
    ):
        volume = {"name": "host", "hostPath": {"path": path}}
        yield _webhook(f"the node's {path}", code, pod("0.1", volumes=[volume]))
    pipes = {"name": "p", "hostPath": {"path": PIPES}}
    yield _webhook("all pipes where the plugin mounts one", code, pod("0.1", volumes=[pipes]), "mps: {attach: node}")
    empty = {"name": "mine", "emptyDir": {}}
    for path in (PIPES, f"{PIPES}/", f"{PIPES}/GPU-0", "/dev/shm", "//dev/shm", "/dev/./shm"):
        mounted = container(volumeMounts=[{"name": "mine", "mountPath": path}])
        yield _webhook(f"a volume of its own over {path}", code, pod("0.1", mounted, volumes=[empty]))
    yield _webhook("a volume with the name of ours", code, pod("0.1", volumes=[{"name": "nvidia-mps", "emptyDir": {}}]))
    yield _policy(
        "the node's devices that another webhook adds",
        "hostPath",
        _with(_forged(), volumes=[{"name": "d", "hostPath": {"path": "/dev"}}]),
    )


def _arguments() -> Iterator[Attempt]:
    for words in (
        ["--gpu-memory-utilization=0.9"],
        ["--gpu-memory-utilization", "0.9"],
        ["--gpu_memory_utilization=0.9"],
        ["-gpu-memory-utilization=0.9"],
        ["--gpu-mem", "0.9"],
        ["--gpu-memory-utilization=1e0"],
        ["--gpu-memory-utilization=nan"],
        ["--gpu-memory-utilization=$(MINE)"],
        ["--gpu-memory-utilization=0.1", "--gpu-memory-utilization=0.9"],
        ["--gpu-memory-utilization"],
    ):
        yield Attempt(
            f"vLLM with {' '.join(words)}", pod("0.2", container(image=VLLM, args=["--model", "m", *words])), "harmless"
        )
        denied = _webhook(
            f"vLLM with {' '.join(words)} where the policy says deny",
            "MemoryArgumentAboveShare",
            pod("0.2", container(image=VLLM, args=["--model", "m", *words])),
        )
        yield replace(denied, rules="frameworks: {onConflict: deny}")
    for text in ("vllm serve m --gpu-memory-utilization 0.9", "exec vllm serve m --gpu-mem='0.9'"):
        shell = container(image=VLLM, command=["sh", "-c", text])
        yield _webhook(f"a shell that runs {text}", "MemoryArgumentAboveShare", pod("0.2", shell))
    for image, field, value in (
        ("tensorflow/serving", "args", "--per_process_gpu_memory_fraction=0.9"),
        ("nvcr.io/nvidia/tritonserver:25.01-py3", "args", "--backend-config=tensorflow,gpu-memory-fraction=0.9"),
        ("nvcr.io/nvidia/tritonserver:25.01-py3", "args", "--tf-gpu-memory-fraction=0.9"),
        ("lmsysorg/sglang:v0.5.5", "args", "--mem-fraction-static=1.5"),
        ("registry.example/own:1", "args", "--gpu-memory-utilization=0.9"),
        ("cupy/cupy:v14", "env", "CUPY_GPU_MEMORY_LIMIT=90%"),
        ("pytorch/pytorch:2.10.0", "env", "PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.9"),
        ("registry.example/own:1", "env", "XLA_PYTHON_CLIENT_MEM_FRACTION=0.9"),
    ):
        name, _, number = value.partition("=")
        fields = {"args": [value]} if field == "args" else {"env": [_env(name, number)]}
        greedy = pod("0.2", container(image=image, **fields))
        rules = "frameworks: {onConflict: deny}"
        yield _webhook(f"{image} with {value}", "MemoryArgumentAboveShare", greedy, rules)
    jax = container(image="nvcr.io/nvidia/jax:25.01", env=[_env("XLA_CLIENT_MEM_FRACTION", "0.9")])
    yield Attempt("a framework's variable above the share", pod("0.2", jax), "harmless")


def _grants() -> Iterator[Attempt]:
    yield _policy("a forged grant with a limit above it", "not what gpu-share.dev/grant says", _tampered("main", "8"))
    yield _policy("a forged grant without a limit", "No container of the pod has a limit", _grant_alone())
    yield _policy("a forged label", "granted it none", _label_alone())
    yield _policy("a grant that names another container", "not what gpu-share.dev/grant says", _renamed())
    longer = _forged()
    longer["spec"]["containers"].append(limited("second", "8"))
    yield _policy("a second container beside a forged grant", "not what gpu-share wrote", longer)
    resubmitted = pod("0.2", annotations={"gpu-share.dev/grant": GRANT % (9, "0.9")})
    yield Attempt("a pod sent again with a changed grant", resubmitted, "harmless")
    copied = pod("0.2", limited("main", "9"), annotations={"gpu-share.dev/grant": GRANT % (9, "0.9")})
    yield _webhook("a pod sent again with a changed grant and limit", "ConflictingRequest", copied)


def _tampered(name: str, vgpus: str) -> dict[str, Any]:
    made = _forged()
    made["spec"]["containers"] = [limited(name, vgpus)]
    return made


def _grant_alone() -> dict[str, Any]:
    return _forged() | {"spec": {"containers": [container()]}}


def _label_alone() -> dict[str, Any]:
    made = pod(None)
    made["metadata"]["labels"] = {"gpu-share.dev/shared": "true"}
    return made


def _renamed() -> dict[str, Any]:
    return _tampered("other", "2")
