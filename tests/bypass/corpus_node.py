"""Attempts with the node's directories, a framework's arguments, and forged grants."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.bypass.attempt import GRANT, Attempt, by_policy, by_webhook, forged, variable, with_spec
from tests.policies.pods import container, limited, pod

PIPES = "/tmp/nvidia-mps"
VLLM = "vllm/vllm-openai:v0.11.0"


def directories() -> Iterator[Attempt]:
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
        yield by_webhook(f"the node's {path}", code, pod("0.1", volumes=[volume]))
    pipes = {"name": "p", "hostPath": {"path": PIPES}}
    yield by_webhook("all pipes where the plugin mounts one", code, pod("0.1", volumes=[pipes]), "mps: {attach: node}")
    empty = {"name": "mine", "emptyDir": {}}
    for path in (PIPES, f"{PIPES}/", f"{PIPES}/GPU-0", "/dev/shm/x", "/dev/./shm//x"):
        mounted = container(volumeMounts=[{"name": "mine", "mountPath": path}])
        yield by_webhook(f"a volume of its own over {path}", code, pod("0.1", mounted, volumes=[empty]))
    for path in ("/dev/shm", "//dev/shm", "/dev/./shm"):
        mounted = container(volumeMounts=[{"name": "mine", "mountPath": path}])
        denies = "mps: {sharedMemory: deny}"
        yield by_webhook(f"a volume of its own over {path}", code, pod("0.1", mounted, volumes=[empty]), denies)
        yield Attempt(f"an emptyDir at {path}", pod("0.2", mounted, volumes=[empty]), "harmless")
        claim = {"name": "mine", "persistentVolumeClaim": {"claimName": "mine"}}
        yield by_webhook(f"a claim at {path}", code, pod("0.1", mounted, volumes=[claim]))
    yield by_webhook(
        "a volume with the name of ours", code, pod("0.1", volumes=[{"name": "nvidia-mps", "emptyDir": {}}])
    )
    for path in (PIPES, f"{PIPES}/GPU-0", "/dev/shm", "/dev/shm/x", "//dev/./shm", "/data/../dev/shm", "/data/.."):
        late = with_spec(forged(volumeMounts=[{"name": "mine", "mountPath": path}]), volumes=[empty])
        yield by_policy(f"a volume over {path} that another webhook adds", 'at a path with ".."', late)
    yield by_policy(
        "the node's devices that another webhook adds",
        "hostPath",
        with_spec(forged(), volumes=[{"name": "d", "hostPath": {"path": "/dev"}}]),
    )


def arguments() -> Iterator[Attempt]:
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
        denied = by_webhook(
            f"vLLM with {' '.join(words)} where the policy says deny",
            "MemoryArgumentAboveShare",
            pod("0.2", container(image=VLLM, args=["--model", "m", *words])),
        )
        yield replace(denied, rules="frameworks: {onConflict: deny}")
    for text in ("vllm serve m --gpu-memory-utilization 0.9", "exec vllm serve m --gpu-mem='0.9'"):
        shell = container(image=VLLM, command=["sh", "-c", text])
        yield by_webhook(f"a shell that runs {text}", "MemoryArgumentAboveShare", pod("0.2", shell))
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
        fields = {"args": [value]} if field == "args" else {"env": [variable(name, number)]}
        greedy = pod("0.2", container(image=image, **fields))
        rules = "frameworks: {onConflict: deny}"
        yield by_webhook(f"{image} with {value}", "MemoryArgumentAboveShare", greedy, rules)
    jax = container(image="nvcr.io/nvidia/jax:25.01", env=[variable("XLA_CLIENT_MEM_FRACTION", "0.9")])
    yield Attempt("a framework's variable above the share", pod("0.2", jax), "harmless")


def grants() -> Iterator[Attempt]:
    yield by_policy("a forged grant with a limit above it", "not what gpu-share.dev/grant says", _tampered("main", "8"))
    yield by_policy("a forged grant without a limit", "No container of the pod has a limit", _grant_alone())
    yield by_policy("a forged label", "and asks for none: remove the label", _label_alone())
    yield by_policy("a grant that names another container", "not what gpu-share.dev/grant says", _renamed())
    longer = forged()
    longer["spec"]["containers"].append(limited("second", "8"))
    yield by_policy("a second container beside a forged grant", "not what gpu-share wrote", longer)
    unlabelled = forged()
    del unlabelled["metadata"]["labels"]
    yield by_policy("a forged grant without the label", "not the label gpu-share.dev/shared", unlabelled)
    asking = forged()
    asking["metadata"]["annotations"]["container.gpu-share.dev/other"] = "0.5"
    yield by_policy("an annotation for a container that was granted nothing", "granted no GPU share", asking)
    resubmitted = pod("0.2", annotations={"gpu-share.dev/grant": GRANT % (9, "0.9")})
    yield Attempt("a pod sent again with a changed grant", resubmitted, "harmless")
    copied = pod("0.2", limited("main", "9"), annotations={"gpu-share.dev/grant": GRANT % (9, "0.9")})
    yield by_webhook("a pod sent again with a changed grant and limit", "ConflictingRequest", copied)


def _tampered(name: str, vgpus: str) -> dict[str, Any]:
    made = forged()
    made["spec"]["containers"] = [limited(name, vgpus)]
    return made


def _grant_alone() -> dict[str, Any]:
    return forged() | {"spec": {"containers": [container()]}}


def _label_alone() -> dict[str, Any]:
    made = pod(None)
    made["metadata"]["labels"] = {"gpu-share.dev/shared": "true"}
    return made


def _renamed() -> dict[str, Any]:
    return _tampered("other", "2")
