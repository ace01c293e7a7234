"""Installations in which a check of what lies below the containers fails, or has nothing to judge."""

from typing import Any

import msgspec

from console.doctor.installation import Installation
from console.objects import Pod
from policies.node_state import Gpu, Toolkit
from tests.console.installations import Wrong, installation, nodes, parsed, policies, seen, with_node
from tests.console.objects import gpu, part, state


def two_drivers() -> Installation:
    one, other = state(gpu(), gpu(index=1), on="gpu-0"), state(gpu(), gpu(index=1), on="gpu-1")
    return installation(seen(**nodes(one, msgspec.structs.replace(other, driver="595.1"))))


def on_runtime(version: str, **more: Any) -> Installation:
    """An installation by CDI alone on nodes with this container runtime."""
    runtime = {"nodeInfo": {"containerRuntimeVersion": version}}
    by_cdi = policies("handover: [cdi]\n")
    return installation(seen(**nodes(state(gpu(), gpu(index=1), on="gpu-0"), **runtime)), **{**by_cdi, **more})


def by_dra(*gpus: Gpu) -> Installation:
    """An installation by variables, in which a policy says DRA, of a node with *gpus* whose runtime has no CDI."""
    info = {"nodeInfo": {"containerRuntimeVersion": "containerd://1.6.0"}}
    return installation(seen(**nodes(state(*gpus, on="gpu-0"), **info)), **policies(x="allocation: dra\n"))


def sliced(mode: str) -> Installation:
    return with_node(gpu(strategy="time-slicing", compute_mode=mode), gpu(index=1))


def settings(*, accepts: bool | None, needed: bool) -> Installation:
    return with_node(gpu(), gpu(index=1), toolkit=Toolkit(accepts_variable=accepts, variable_needed=needed))


def simulated() -> Installation:
    """An installation on a node without NVIDIA's driver."""
    said = state(gpu(compute_mode=""), gpu(index=1, compute_mode=""), on="gpu-0", driver="simulated", toolkit=None)
    return installation(seen(**nodes(said)), toolkits={})


def strict(**security: Any) -> Installation:
    """An installation on a node whose toolkit takes variables from privileged containers alone."""
    plugin = part("gpu-0")
    plugin["spec"]["containers"][0]["securityContext"] = security
    said = state(gpu(), gpu(index=1), on="gpu-0", toolkit=Toolkit(accepts_variable=False, variable_needed=False))
    return installation(seen(**nodes(said), parts=(parsed(plugin, Pod),)))


WRONG: list[Wrong] = [
    ("drivers", "warning", "595.1 on gpu-1", two_drivers),
    ("drivers", "warning", "535.104 is older than 550", lambda: with_node(gpu(), gpu(index=1), driver="535.104")),
    (
        "compute-mode",
        "failure",
        "gpu-0 GPU 0: default, mps needs exclusive-process",
        lambda: with_node(gpu(compute_mode="default"), gpu(index=1)),
    ),
    ("compute-mode", "failure", "exclusive-process, time-slicing needs default", lambda: sliced("exclusive-process")),
    ("compute-mode", "unknown", "does not say the compute mode", lambda: sliced("")),
    (
        "toolkit-version",
        "warning",
        "gpu-0: 1.17.7, 1.17.8 or newer is expected",
        lambda: installation(toolkits={"gpu-0": "1.17.7"}),
    ),
    ("toolkit-version", "unknown", "look at nvidia-ctk --version on gpu-0", lambda: installation(toolkits={})),
    (
        "toolkit-settings",
        "failure",
        "gpu-0: accept-nvidia-visible-devices-envvar-when-unprivileged = false, and containers get their GPU by",
        lambda: settings(accepts=False, needed=True),
    ),
    (
        "toolkit-settings",
        "warning",
        "gpu-0: any pod gets the GPUs that it names",
        lambda: settings(accepts=True, needed=False),
    ),
    (
        "toolkit-settings",
        "warning",
        "gpu-0: accept-nvidia-visible-devices-envvar-when-unprivileged = false, so the plugin gets no NVML when",
        lambda: strict(capabilities={"drop": ["ALL"]}),
    ),
    ("toolkit-settings", "unknown", "can be read on gpu-0: look at", lambda: settings(accepts=None, needed=True)),
    ("toolkit-settings", "unknown", "can be read on gpu-0: look at", lambda: with_node(gpu(), toolkit=None)),
    ("cdi", "failure", "gpu-0: containerd 1.6.38 has no CDI", lambda: on_runtime("containerd://1.6.38")),
    ("cdi", "warning", "only if it is told enable_cdi = true", lambda: on_runtime("containerd://1.7.27-k3s1")),
    ("cdi", "warning", "CRI-O 1.33.2 sets a pod's variables after", lambda: on_runtime("cri-o://1.33.2")),
    ("cdi", "unknown", "nothing is known of CDI in docker://28.1", lambda: on_runtime("docker://28.1")),
    ("drivers", "not-applicable", "no node tells of a driver", lambda: with_node(gpu(), driver="")),
    ("compute-mode", "not-applicable", "no node tells of a GPU with a compute mode", simulated),
    ("toolkit-version", "not-applicable", "no node tells of NVIDIA's driver", simulated),
    ("toolkit-settings", "not-applicable", "no node tells of NVIDIA's driver", simulated),
    ("cdi", "not-applicable", "handover: [envvar] does without it", installation),
    ("cdi", "failure", "gpu-0: containerd 1.6.0 has no CDI", lambda: by_dra(gpu(allocation="dra"))),
    ("cdi", "not-applicable", "no node allocates by DRA, and handover: [envvar] does", lambda: by_dra(gpu())),
    ("cdi", "unknown", "1.6.0 has no CDI, and nobody knows whether", lambda: by_dra(gpu(allocation=""))),
    ("cdi", "unknown", "1.6.0 has no CDI, and nobody knows whether", by_dra),
]
