"""Installations in which a check of the policies fails."""

from functools import partial
from typing import Any

import msgspec

from console.doctor.installation import Installation
from console.objects import Pod
from tests.console.installations import (
    CLUSTER,
    PARTS,
    Wrong,
    installation,
    namespace,
    nodes,
    parsed,
    policies,
    seen,
    webhook,
    with_node,
)
from tests.console.objects import PROGRAM, gpu, part, read_by, state


def that_read_others() -> Installation:
    made = [part("gpu-0", "plugin"), part("gpu-0", "webhook")]
    made[0]["spec"]["volumes"] = [read_by("gpu-share-cluster-1")]
    made[1]["spec"]["volumes"] = [read_by("gpu-share-cluster-2")]
    return installation(seen(parts=tuple(parsed(one, Pod) for one in made)))


def with_a_third(component: str) -> Installation:
    """One in which a further ConfigMap stands last in the volume of *component*."""
    made = [part("gpu-0", one) for one in PARTS]
    for one in made:
        if one["metadata"]["labels"]["app.kubernetes.io/component"] == component:
            one["spec"]["volumes"] = [read_by("gpu-share-policies", "gpu-share-cluster", "team-policies")]
    return installation(seen(parts=tuple(parsed(one, Pod) for one in made)))


def of_newer(cluster: str = CLUSTER, **changes: Any) -> Installation:
    """An installation of a newer gpu-share than the one that looks."""
    made = nodes(msgspec.structs.replace(state(gpu(), on="gpu-0"), program="9.0.0"))
    return installation(seen(**made), **{**policies(cluster), **changes})


WRONG: list[Wrong] = [
    ("policies-valid", "unknown", "mps.new: unknown field", lambda: of_newer("mps: {new: 1}\n")),
    ("policies-valid", "unknown", f"gpu-0 runs gpu-share 9.0.0, and this is {PROGRAM}", lambda: of_newer("new: 1\n")),
    ("pipe-directory", "unknown", "that this gpu-share can read: gpu-0 runs gpu-share 9", lambda: of_newer("new: 1\n")),
    ("warn-mode", "unknown", "unknown field", lambda: of_newer(**policies(**{"team-vision": "new: 1\n"}))),
    (
        "admission-shipped",
        "unknown",
        "gpu-0 runs gpu-share 9.0.0",
        lambda: of_newer(webhook=webhook(matchConditions=())),
    ),
    ("policies-valid", "failure", "x.yaml:1", lambda: installation(**policies(x="strategi: mps\n"))),
    (
        "policies-in-force",
        "failure",
        "policy file broken: a.yaml",
        lambda: installation(ready={"w": "ready\npolicy file broken: a.yaml:3"}),
    ),
    (
        "policies-same",
        "warning",
        "webhook read gpu-share-cluster-2",
        that_read_others,
    ),
    (
        "policies-same",
        "warning",
        "a restart for vgpusPerGpu",
        lambda: with_node(gpu(), restart_needed=("vgpusPerGpu",)),
    ),
    (
        "policies-same",
        "warning",
        "goes on without vgpusPerGpu 10 -> 50: more than the 48 clients",
        lambda: with_node(gpu(), not_taken="vgpusPerGpu 10 -> 50: more than the 48 clients"),
    ),
    *(
        (
            "policies-cluster",
            "warning",
            f"team-policies stands after gpu-share-cluster in the volume of {component}: a _cluster.yaml in it would",
            partial(with_a_third, component),
        )
        for component in ("webhook", "plugin", "mps")
    ),
    (
        "pod-security",
        "failure",
        "a enforces restricted, and says attach: pod (a.yaml:1)",
        lambda: installation(
            **namespace("a", labels={"pod-security.kubernetes.io/enforce": "restricted"}),
            **policies(a="mps: {attach: pod}\n"),
        ),
    ),
    (
        "pod-security",
        "failure",
        "the namespace gpu-share enforces baseline, so no plugin and no MPS can be created",
        lambda: installation(**namespace("gpu-share", labels={"pod-security.kubernetes.io/enforce": "baseline"})),
    ),
]
