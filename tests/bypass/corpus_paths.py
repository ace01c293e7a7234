"""Attempts with the node's paths, beside what the policy of the namespace lists, and with other kinds of volumes."""

from collections.abc import Iterator
from typing import Any

from tests.bypass.attempt import LISTED, Attempt, by_policy, by_webhook, forged, variable, with_spec
from tests.policies.pods import container, pod

CODE = "ConflictingRequest"
UNLISTED = "no path that the namespace lists"
WRITTEN = "mounts a path of the node writable"

# Whether their names say so or not: each leads to devices, sockets, other containers' files or what root runs.
OF_THE_NODE = (
    "/tmp/link",  # it may lead to /dev
    "/etc/cdi",
    "/etc/containerd",
    "/etc/containerd/config.toml",
    "/etc/nvidia-container-runtime",
    "/etc/cron.d",
    "/etc/systemd/system",
    "/etc/ld.so.preload",
    "/var/cdi/dynamic",
    "/var/lib/containers",
    "/var/lib/rancher/k3s/agent",
    "/var/lib/cni",
    "/var/log",
    "/var/log/pods",
    "/usr",
    "/usr/local/nvidia",
    "/usr/libexec/kubernetes",
    "/root",
    "/root/.ssh",
    "/home",
    "/mnt",
    "/opt",
    "/opt/cni/bin",
    "/srv",
    "/data",  # it holds what is listed
    "/data/models2",
    "/data/model",
    "/scratch2",
    "/scratc",
)
MISSPELT = (
    "/data/models/../../dev",
    "/data/models/..",
    "/data//models",
    "//data/models",
    "/./data/models",
    "/data/models/./a",
    "/data/models//",
    "/data/models/.",
    "data/models",
    "/scratch/..",
    "/scratch/.",
    "/scratch//",
    "/DATA/models",
)


def paths() -> Iterator[Attempt]:
    yield from _unlisted()
    yield from _ways_to_write()
    yield from _pipes()
    yield from _kinds()
    yield from _admitted()
    yield from _prefixes()
    yield from _in_the_api_server()


def of_node(path: str, kind: str | None = None) -> dict[str, Any]:
    return {"name": "data", "hostPath": {"path": path} | ({} if kind is None else {"type": kind})}


def at(path: str = "/data/models", kind: str | None = None, share: str = "0.2", **mount: Any) -> dict[str, Any]:
    """A pod whose container mounts the node's *path*, read-only unless *mount* says otherwise."""
    mounts = [{"name": "data", "mountPath": "/data", "readOnly": True, **mount}]
    return pod(share, container(volumeMounts=mounts), volumes=[of_node(path, kind)])


def _unlisted() -> Iterator[Attempt]:
    for path in OF_THE_NODE:
        yield by_webhook(f"the node's {path}, which the policy does not list", CODE, at(path), LISTED)
    for path in MISSPELT:
        yield by_webhook(f"the node's {path}, not as the policy writes it", CODE, at(path), LISTED)
    yield by_webhook("a path that another policy lists", CODE, at())
    yield by_webhook("a path in a writable one, which may be a link", CODE, at("/scratch/job"), LISTED)
    sliced = f"{LISTED}\nstrategy: time-slicing"
    yield by_webhook("a path that is not listed, under time-slicing", CODE, at("/srv"), sliced)
    yield by_webhook("a volume that no container mounts", CODE, pod("0.2", volumes=[of_node("/srv")]), LISTED)
    two = at()
    two["spec"]["volumes"].append({"name": "more", "hostPath": {"path": "/srv"}})
    yield by_webhook("one path that is listed and one that is not", CODE, two, LISTED)
    beside = container("beside", volumeMounts=[{"name": "data", "mountPath": "/d", "readOnly": True}])
    on = pod("0.2", container(), beside, volumes=[of_node("/srv")])
    yield by_webhook("a path that a container without a share mounts", CODE, on, LISTED)


def _ways_to_write() -> Iterator[Attempt]:
    for said, mount in (
        ("not said", {"readOnly": None}),
        ("false", {"readOnly": False}),
        ("true, with propagation from the node", {"mountPropagation": "HostToContainer"}),
        ("not said, with subPath", {"readOnly": None, "subPath": "a"}),
        ("not said, with subPathExpr", {"readOnly": None, "subPathExpr": "$(HOSTNAME)"}),
    ):
        yield by_webhook(f"a read-only path whose mount has readOnly {said}", CODE, at(**mount), LISTED)
    writing = container("other", volumeMounts=[{"name": "data", "mountPath": "/d"}])
    on = at()
    on["spec"]["containers"].append(writing)
    yield by_webhook("a read-only path that a container without a share may write", CODE, on, LISTED)
    for kind, more in (("an init container", {}), ("a sidecar", {"restartPolicy": "Always"})):
        yield by_webhook(
            f"a read-only path that {kind} may write", CODE, with_spec(at(), initContainers=[writing | more]), LISTED
        )
    twice = at()
    twice["spec"]["containers"][0]["volumeMounts"].append({"name": "data", "mountPath": "/again"})
    yield by_webhook("a read-only path that is mounted twice, once writable", CODE, twice, LISTED)
    for kind in ("DirectoryOrCreate", "FileOrCreate"):
        yield by_webhook(f"a read-only path with type {kind}", CODE, at("/data/models/new", kind), LISTED)


def _pipes() -> Iterator[Attempt]:
    """Who writes to the directory of all pipes can put a link where the plugin mounts that of a GPU."""
    volumes = [{"name": "p", "hostPath": {"path": "/tmp/nvidia-mps"}}]
    for said, fields in (
        ("written", {}),
        ("written elsewhere", {"mountPath": "/mps", "readOnly": False}),
        ("written by a part of them", {"mountPath": "/mps", "subPath": "."}),
        ("read, with propagation from the node", {"readOnly": True, "mountPropagation": "HostToContainer"}),
    ):
        mounts = [{"name": "p", "mountPath": "/tmp/nvidia-mps", **fields}]
        other = container("other", volumeMounts=mounts, env=[variable("NVIDIA_VISIBLE_DEVICES", "void")])
        both = [*forged()["spec"]["containers"], other]
        for where, on, late in (
            ("its container", pod("0.2", container(volumeMounts=mounts)), forged(volumeMounts=mounts)),
            ("another one", pod("0.2", container(), other), with_spec(forged(), containers=both)),
            ("an init container", pod("0.2", initContainers=[other]), with_spec(forged(), initContainers=[other])),
        ):
            name, asked = f"the pipes of all GPUs in {where}, {said}", with_spec(on, volumes=volumes)
            is_denied = "mountPropagation" in fields
            yield by_webhook(name, CODE, asked) if is_denied else Attempt(name, asked, "harmless")
            yield by_policy(f"{name}, that another webhook adds", WRITTEN, with_spec(late, volumes=volumes))
    early = container("other", volumeMounts=[{"name": "nvidia-mps", "mountPath": "/mps"}])
    yield Attempt("the volume of the pipes before it is there", pod("0.2", container(), early), "harmless")


def _kinds() -> Iterator[Attempt]:
    for kind in ("Socket", "BlockDevice", "CharDevice"):
        for path in ("/data/models/x", "/scratch"):
            yield by_webhook(f"{path} with type {kind}", CODE, at(path, kind), LISTED)
    for kind, fields in (
        ("flexVolume", {"driver": "example.com/bind", "options": {"path": "/dev"}}),
        ("gitRepo", {"repository": "https://example.com/hooks.git"}),
    ):
        volume = {"name": "data", kind: fields}
        yield by_webhook(f"a {kind}", CODE, pod("0.2", volumes=[volume]), LISTED)


def _prefixes() -> Iterator[Attempt]:
    code, allow = "ReservedEnvironment", "environment: {envFrom: allow}"
    aimed = (
        "NVIDIA_VISIBLE_",
        "NVIDIA_VISIBLE_DEVICE",
        "NVIDIA_V",
        "N",
        "CUDA_MPS_",
        "CUDA_MPS_PINNED_DEVICE_MEM_",
        "CUDA_M",
    )
    for prefix in (*aimed, "CUDA_VISIBLE_", "NVIDIA_GPU_MEMORY_", "NVIDIA_G", "GPU_SHARE_", "GPU_SHARE_FRACTIO"):
        source = [{"prefix": prefix, "configMapRef": {"name": "mine"}}]
        yield by_webhook(f"an envFrom with the prefix {prefix}", code, pod("0.2", container(envFrom=source)), allow)
        yield by_policy(
            f"an envFrom with the prefix {prefix} that another webhook adds", "prefix", forged(envFrom=source)
        )
    secret = [{"configMapRef": {"name": "mine"}}, {"prefix": "CUDA_MPS_", "secretRef": {"name": "mine"}}]
    for kind, on in (
        ("a container beside", pod("0.2", container(), container("b", envFrom=secret))),
        ("an init container", pod("0.2", initContainers=[container("i", envFrom=secret)])),
    ):
        yield by_webhook(f"an envFrom with a reserved prefix in {kind}", code, on, allow)
    common = [{"prefix": "NVIDIA_", "secretRef": {"name": "ngc"}}]
    yield Attempt("an envFrom with a common prefix", pod("0.2", container(envFrom=common)), "harmless", rules=allow)
    beside = pod("0.2", container(), container("b", envFrom=[{"configMapRef": {"name": "mine"}}]))
    yield Attempt("an envFrom beside the share, whose container sees no GPU", beside, "harmless")


def _admitted() -> Iterator[Attempt]:
    recursive = {"recursiveReadOnly": "Disabled"}
    for name, on in (
        ("a listed path", at()),
        ("a listed path with a slash at its end", at("/data/models/")),
        ("a path in a listed one", at("/data/models/llama/7b")),
        ("a hidden directory in a listed one", at("/data/models/.cache")),
        ("a listed path as a Directory", at(kind="Directory")),
        ("a listed path by subPath", at(subPath="llama")),
        ("a listed path that is not recursively read-only", at(**recursive)),
        ("a writable path, written", at("/scratch", readOnly=False)),
        ("a writable path that is made", at("/scratch/", "DirectoryOrCreate", readOnly=None)),
        ("what lies in a writable path, by subPath", at("/scratch", readOnly=None, subPath="job")),
        ("a writable path, read", at("/scratch")),
    ):
        yield Attempt(name, on, "harmless", rules=LISTED)
    for kind, fields in (
        ("inline csi", {"csi": {"driver": "secrets-store.csi.k8s.io", "readOnly": True}}),
        ("nfs", {"nfs": {"server": "nfs.example.com", "path": "/models"}}),
        ("a claim", {"persistentVolumeClaim": {"claimName": "models"}}),
    ):
        mounted = container(volumeMounts=[{"name": "data", "mountPath": "/data"}])
        yield Attempt(f"a volume by {kind}", pod("0.2", mounted, volumes=[{"name": "data", **fields}]), "harmless")


def _in_the_api_server() -> Iterator[Attempt]:
    for path in ("/srv", "/data", "/data/models2", "/scratch/job", "/data//models", "/etc/cdi", "/tmp/link", "/tmp"):
        on = forged(volumeMounts=[{"name": "data", "mountPath": "/d", "readOnly": True}])
        yield by_policy(
            f"{path} of the node that another webhook adds", UNLISTED, with_spec(on, volumes=[of_node(path)])
        )
    for kind in ("Socket", "BlockDevice", "CharDevice", "DirectoryOrCreate"):
        volume = of_node("/data/models/x", kind)
        yield by_policy(
            f"a hostPath of type {kind} that another webhook adds",
            "change its type",
            with_spec(forged(), volumes=[volume]),
        )
    for said, mount in (("writable", {}), ("propagated", {"readOnly": True, "mountPropagation": "HostToContainer"})):
        on = forged(volumeMounts=[{"name": "data", "mountPath": "/d", **mount}])
        on = with_spec(on, volumes=[of_node("/data/models")])
        yield by_policy(f"a read-only path that another webhook mounts {said}", WRITTEN, on)
    init = container("init", volumeMounts=[{"name": "data", "mountPath": "/d"}])
    on = with_spec(forged(), volumes=[of_node("/data/models")], initContainers=[init])
    yield by_policy("a read-only path that another webhook lets an init container write", WRITTEN, on)
    flex = {"name": "f", "flexVolume": {"driver": "example.com/bind"}}
    yield by_policy("a flexVolume that another webhook adds", "flexVolume", with_spec(forged(), volumes=[flex]))
