"""Pods that have their shares by DRA, and what of a GPU is given now."""

import json
import time

from tests.cluster.api import Object
from tests.cluster.cluster import Cluster, eventually
from tests.cluster.node import Node
from tests.cluster.pods import Place, if_running, pod, stubborn

CHANGED_SECONDS = 5
PREPARED_AGAIN_SECONDS = 150  # the kubelet tries again after 75 to 90 s
STUBBORN = stubborn("0.2")


def resource_of(share: str, cluster: Cluster) -> str:
    made = cluster.api.create(pod(share), "default", dry_run=True)
    limits = made.body["spec"]["containers"][0]["resources"].get("limits", {}) if made.ok else {}
    return next(iter(limits), "")


def running(place: Place, name: str) -> Object:
    """Wait until a pod runs: a kubelet that could not prepare its claim tries again at once when the pod is changed."""
    changed_seconds = time.monotonic()

    def look() -> Object | None:
        nonlocal changed_seconds
        if time.monotonic() > changed_seconds + CHANGED_SECONDS:
            changed_seconds = time.monotonic()
            if place.events("FailedPrepareDynamicResources", "Pod"):
                place.cluster.run(f"kubectl -n {place.name} annotate pod {name} retry={changed_seconds} --overwrite")
        return if_running(place.get(name))

    return eventually(look, seconds=PREPARED_AGAIN_SECONDS, what=f"{place.name}/{name} runs")


def started(place: Place, share: str, name: str, *containers: Object, **spec: object) -> Object:
    made = place.create(pod(share, *containers, name=name, **spec))
    assert made.ok, made.message
    return running(place, name)


def gpu_of(place: Place, name: str) -> str:
    return place.report(name).environment["NVIDIA_VISIBLE_DEVICES"]


def is_pending(place: Place, name: str) -> bool:
    said = [one for one in place.events("FailedScheduling", "Pod") if "cannot allocate all claims" in one]
    return bool(said) and place.get(name)["status"]["phase"] == "Pending"


def grant_of(place: Place) -> str:
    made = place.create(pod("0.2"), dry_run=True)
    return str(made.body["metadata"]["annotations"].get("gpu-share.dev/grant", "")) if made.ok else ""


def most_until_running(names: list[str], place: Place, node: Node) -> float:
    """Wait until pods run, and say what was given of one GPU meanwhile, at most."""
    seen = [0.0]

    def are_running() -> bool:
        seen.append(most_of_one_gpu(node))
        return all(place.get(name)["status"]["phase"] == "Running" for name in names)

    eventually(are_running, seconds=PREPARED_AGAIN_SECONDS, what=f"{', '.join(names)} run")
    return max(seen)


def most_of_one_gpu(node: Node) -> float:
    """Add up the shares of the containers that have the same GPU now, on the GPU that is given most, by environment."""
    script = (
        "import pathlib, collections, json\n"
        "found = collections.defaultdict(dict)\n"
        "for path in pathlib.Path('/proc').glob('[0-9]*'):\n"
        "    try:\n"
        "        text = (path / 'environ').read_bytes().decode(errors='replace')\n"
        "        group = (path / 'cgroup').read_text()\n"
        "    except OSError:\n"
        "        continue\n"
        "    variables = dict(one.split('=', 1) for one in text.split(chr(0)) if '=' in one)\n"
        "    gpu = variables.get('NVIDIA_VISIBLE_DEVICES', '')\n"
        "    if gpu.startswith('GPU-') and 'GPU_SHARE_FRACTION' in variables:\n"
        "        found[gpu][group] = float(variables['GPU_SHARE_FRACTION'])\n"
        "print(json.dumps([round(sum(one.values()), 3) for one in found.values()]))\n"
    )
    return max(json.loads(node.run(f"python3 - <<'END'\n{script}END\n")), default=0.0)
