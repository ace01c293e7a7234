"""Installations in which a setting is not the same in its second place."""

from copy import deepcopy
from functools import partial
from typing import Any

from console.doctor.installation import Installation
from console.objects import Pod
from tests.console.installations import (
    CLUSTER,
    Wrong,
    admission_policies,
    installation,
    namespace,
    parsed,
    policies,
    seen,
    webhook,
)
from tests.console.objects import part
from tests.console.wrong.of_admission import LOCKDOWN
from tests.manifests.admission import BASE

PIPES = "/tmp/nvidia-mps"


def mps_with(*, path: str = PIPES, at: str = PIPES) -> Installation:
    """An installation whose `gpu-share mps` has its pipes in *path* of the node, and *at* that in its container."""
    made = part("gpu-0", "mps")
    made["spec"]["volumes"] = [{"name": "pipes", "hostPath": {"path": path}}]
    made["spec"]["containers"][0]["volumeMounts"] = [{"name": "pipes", "mountPath": at}]
    return installation(seen(parts=(parsed(made, Pod),)))


def elsewhere() -> Installation:
    return installation(**policies(CLUSTER + "mps: {pipeDirectory: /run-mps/a.b}\n"))


def moved(directory: str, pipes: str) -> Installation:
    """One whose pipes are in another directory, and whose admission policies have *pipes* as their variable."""
    objects = deepcopy([*BASE, *LOCKDOWN])
    for one in objects:
        for variable in one["spec"].get("variables", []) if one["kind"] == "ValidatingAdmissionPolicy" else []:
            if variable["name"] == "pipes":
                variable["expression"] = pipes
            elif variable["name"] == "never":
                variable["expression"] = variable["expression"].replace(PIPES, directory)
    cluster = CLUSTER + f"mps: {{pipeDirectory: {directory}}}\n"
    return installation(**{**policies(cluster), **admission_policies(objects)})


def with_other_names() -> Installation:
    """One whose webhook has the names of `_cluster.yaml`, and whose admission policies have not."""
    names = {"expression": "'a.b/gpu' 'gpu-share.dev/vgpu-timesliced' 'gpu-share.dev/gpu'"}
    named: dict[str, Any] = policies("resourceNames: {mps: a.b/gpu}\n")
    return installation(webhook=webhook(matchConditions=(names,)), **named)


def locked_down(cluster: str) -> Installation:
    """One with the lockdown as it is shipped, and another `_cluster.yaml`."""
    return installation(**{**policies(cluster), **admission_policies([*BASE, *LOCKDOWN])})


def locking(policy: str, namespace: str) -> Installation:
    """One with the lockdown, of which one *policy* does not exempt a *namespace*."""
    objects = deepcopy([*BASE, *LOCKDOWN])
    for one in objects:
        if (one["kind"], one["metadata"]["name"]) == ("ValidatingAdmissionPolicy", policy):
            (by_name,) = one["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
            by_name["values"].remove(namespace)
    return installation(**admission_policies(objects))


WRONG: list[Wrong] = [
    (
        "exempt-namespaces",
        "failure",
        "is called for batch, which is exempt",
        lambda: installation(**policies("exemptNamespaces: [kube-system, batch]\n")),
    ),
    (
        "resource-names",
        "failure",
        "lack example.com/vgpu",
        lambda: installation(**policies("resourceNames: {mps: example.com/vgpu}\n")),
    ),
    (
        "pipe-directory",
        "failure",
        "serves in /other",
        lambda: mps_with(path="/other"),
    ),
    ("warn-mode", "warning", "lacks the label", lambda: installation(**policies(**{"team-vision": "mode: warn\n"}))),
    (
        "warn-mode",
        "warning",
        "does not say mode: warn",
        lambda: installation(**namespace("a", labels={"gpu-share.dev/mode": "warn"})),
    ),
    (
        "exempt-namespaces",
        "failure",
        "the policy gpu-share-changes is not called for kube-system, which is not exempt",
        lambda: installation(**policies("exemptNamespaces: []\n")),
    ),
    *(
        (
            "exempt-namespaces",
            "failure",
            f"the policy {policy} is called for {name}, whose pods need what it denies",
            partial(locking, policy, name),
        )
        for policy in ("gpu-share-lockdown", "gpu-share-lockdown-claims")
        for name in ("gpu-share", "kube-system")
    ),
    ("resource-names", "failure", "the conditions of the policy gpu-share lack a.b/gpu", with_other_names),
    (
        "resource-names",
        "failure",
        "the conditions of pods.gpu-share.dev lack the resources of devices",
        lambda: installation(webhook=webhook(matchConditions=()), **policies(CLUSTER + "nodes: [{device: t4}]\n")),
    ),
    (
        "resource-names",
        "failure",
        "the variable resources of the policy gpu-share is not ['a.b",
        with_other_names,
    ),
    (
        "resource-names",
        "failure",
        "the variable resources of the policy gpu-share-lockdown is not ['a.b",
        lambda: locked_down("resourceNames: {mps: a.b/gpu}\n"),
    ),
    (
        "pipe-directory",
        "failure",
        "the variable pipes of the policy gpu-share-lockdown is not the pattern that gpu-share ships for /run-mps/a.b",
        lambda: locked_down(CLUSTER + "mps: {pipeDirectory: /run-mps/a.b}\n"),
    ),
    *(
        (
            "pipe-directory",
            "failure",
            f"{policy} is not the pattern that gpu-share ships for /srv/mps: expected '^([.]?/+)*srv(/+[.])*/+mps'",
            lambda written=written: moved("/srv/mps", written),
        )
        for policy in ("gpu-share", "gpu-share-changes", "gpu-share-lockdown")
        for written in ("'/srv/mps'", "'^/srv/mps'", "'([.]?/+)*srv(/+[.])*/+mps'", "'^([.]?/+)*srv(/+[.])*/+mp'")
    ),
    ("pipe-directory", "failure", "has the pipes at /other", lambda: mps_with(at="/other")),
    (
        "pipe-directory",
        "failure",
        "the variable pipes of the policy gpu-share-changes is not the pattern that gpu-share ships for /run-mps/a.b",
        elsewhere,
    ),
    ("pipe-directory", "failure", "the variable never of the policy gpu-share lacks /run-mps/a.b", elsewhere),
    (
        "host-paths",
        "warning",
        "a: its annotation lacks /data/models, which its policy lists a: its policy lacks /data, /models:rw, which",
        lambda: installation(
            **namespace("a", host_paths="/data, /models:rw,/scratch:rw"),
            **policies(a="hostPaths: [{path: /data/models}, {path: /scratch, writable: true}]\n"),
        ),
    ),
]
