"""What `gpu-share explain` is asked about: pods of team-vision, what made them, and a node with two GPUs."""

from collections.abc import Callable
from typing import Any

import msgspec
from click.testing import Result

from policies.node_state import Use
from tests.console.objects import GIB, cluster, failed_gpu, gpu, state, tenant
from tests.console.stand_in import Object, StandIn, status_of

Asked = Callable[..., Result]
OURS = "/api/v1/namespaces/team-vision"
_KINDS = {
    "apps/v1": ("deployments", "statefulsets", "daemonsets", "replicasets"),
    "batch/v1": ("jobs", "cronjobs"),
    "batch.volcano.sh/v1alpha1": ("jobs",),
}


def known(*pods: Object, **more: Any) -> StandIn:
    """A node with two GPUs, and pods in team-vision."""
    held = (
        tenant("resnet-0", 2, use=Use(memory_bytes=3 * GIB, sm_ratio=0.25, processes=1)),
        tenant("bert-0", 5, namespace="team-language"),
    )
    made = cluster(more.get("state") or state(gpu(*held, hidden=1), failed_gpu()))
    made.lists[f"{OURS}/pods"] = list(pods)
    made.lists[f"{OURS}/events"] = []
    files = {"_default.yaml": "", "team-vision.yaml": "share:\n  maximum: '0.5'\n"}
    made.lists["/api/v1/namespaces/gpu-share/configmaps"] = [
        {"metadata": {"name": "gpu-share-policies"}, "data": files},
        {"metadata": {"name": "gpu-share-cluster"}, "data": {}},
    ]
    made.raw[OURS] = (200, b'{"metadata": {"name": "team-vision"}}')
    return made


def explain(asked: Asked, on: StandIn, *words: str) -> str:
    ran = asked(on, "explain", "-n", "team-vision", *words)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def owned(one: Object, kind: str, name: str) -> Object:
    one["metadata"]["ownerReferences"] = [{"kind": kind, "name": name}]
    return one


def only(on: StandIn, path: str = "", **said: Any) -> None:
    """Have one object that makes pods, which *said* this of itself, and no other."""
    for group, kinds in _KINDS.items():
        for kind in kinds:
            for name in ("resnet", "db", "none", "train", "\x1b[2J"):
                on.raw[f"/apis/{group}/namespaces/team-vision/{kind}/{name}"] = status_of(404, "not found")
    if path:
        made = {"metadata": {"name": path.rpartition("/")[2]}, **said}
        on.raw[f"/apis/{path}"] = (200, msgspec.json.encode(made))
