"""Checks of what lies below the containers on a node: compute modes, driver, NVIDIA's toolkit; CDI is beside."""

from typing import Final

from console.doctor.installation import Installation
from console.doctor.of_cdi import BY_CDI
from console.doctor.parts import parts
from console.doctor.verdict import (
    OK,
    Check,
    Verdict,
    cut,
    fail,
    not_applicable,
    not_seen,
    unknown,
    warn,
)
from console.doctor.version_numbers import numbers_in
from console.seen import STATES, SeenNode
from policies.contract import MPS
from policies.node_state import DEFAULT_MODE, EXCLUSIVE_PROCESS, Gpu

_PAGE: Final = "install.md#driver-and-toolkit"
_OLDEST_DRIVER: Final = (550,)
# NVIDIA's bulletin 5659 of July 2025, CVE-2025-23266: a container's image becomes root on the node.
_OLDEST_TOOLKIT: Final = (1, 17, 8)
_NO_DRIVER: Final = "no node tells of NVIDIA's driver"
_VARIABLE: Final = "accept-nvidia-visible-devices-envvar-when-unprivileged"
_NAMING: Final = frozenset({"ALL", "CAP_SYS_ADMIN", "SYS_ADMIN"})  # with which a container may name GPUs in it
_STRICT: Final = "manifests/components/strict-toolkit"
_MODES: Final[dict[str, tuple[str, ...]]] = {
    MPS: (EXCLUSIVE_PROCESS,),
    "time-slicing": (DEFAULT_MODE,),
    "whole": (DEFAULT_MODE, EXCLUSIVE_PROCESS),
}


def compute_modes(on: Installation) -> Verdict:
    """See that the compute mode of each GPU lets those on it that its strategy allows, and no others."""
    found, silent, told = [], [], False
    for node in on.seen.nodes:
        if not node.is_fresh:
            continue
        for gpu in node.gpus:
            allowed = _MODES.get(gpu.strategy, ())
            told |= bool(gpu.compute_mode and allowed)
            if gpu.compute_mode and allowed and gpu.compute_mode not in allowed:
                expected = " or ".join(allowed)
                found.append(f"{node.name} {gpu.called}: {gpu.compute_mode}, {gpu.strategy} needs {expected}")
            elif _should_say(node, gpu):
                silent.append(f"{node.name} does not say the compute mode of GPU {gpu.index}: its gpu-share is older")
    if found:
        hint = (
            "gpu-share mps sets the mode of GPUs under MPS, see its log; where a GPU leaves MPS, nothing until "
            "gpu-share mps is replaced there, whose daemon needs the mode; the others: nvidia-smi -i N -c DEFAULT"
        )
        return fail(*cut(found), hint=hint)
    if silent:
        return unknown("; ".join(cut(silent)))
    return OK if told else not_applicable("no node tells of a GPU with a compute mode")


def drivers(on: Installation) -> Verdict:
    """See that all nodes have the same driver, and one that is new enough."""
    by_driver: dict[str, list[str]] = {}
    for node in on.seen.nodes:
        if node.state and node.state.driver:
            by_driver.setdefault(node.state.driver, []).append(node.name)
    if not by_driver:
        return not_applicable("no node tells of a driver")
    told = [f"{driver} on {', '.join(nodes)}" for driver, nodes in sorted(by_driver.items())]
    old = [driver for driver in by_driver if (number := numbers_in(driver)) and number < _OLDEST_DRIVER]
    found = told if len(told) > 1 else []
    found += [f"{driver} is older than {_OLDEST_DRIVER[0]}, with which gpu-share begins" for driver in sorted(old)]
    return warn(*found, hint="limits of MPS depend on the driver: use one version")


def toolkits(on: Installation) -> Verdict:
    """See that NVIDIA's container toolkit is new enough, where something tells its version."""
    known = on.toolkits or {}
    needed = ".".join(map(str, _OLDEST_TOOLKIT))
    old = [
        f"{node}: {version}, {needed} or newer is expected"
        for node, version in sorted(known.items())
        if (number := numbers_in(version)) and number < _OLDEST_TOOLKIT
    ]
    if old:
        return warn(
            *cut(old), hint="upgrade it: with this version the image of a container can become root on the node"
        )
    silent = [node.name for node in on.seen.nodes if node.has_driver and node.name not in known]
    if not silent:
        return OK if known else not_applicable(_NO_DRIVER)
    look = f"look at nvidia-ctk --version on {', '.join(cut(silent))}: {needed} or newer is expected"
    return not_seen(on, "toolkits") or unknown(f"only pods of NVIDIA's GPU Operator tell the toolkit's version: {look}")


def toolkit_settings(on: Installation) -> Verdict:
    """See that the toolkit accepts NVIDIA_VISIBLE_DEVICES where containers need it, and nowhere else."""
    told: dict[str, list[str]] = {}
    for node in on.seen.nodes:
        what, sentence = _settings_of(on, node)
        told.setdefault(what, []).append(sentence)
    if broken := told.get("needed"):
        ways = f"set {_VARIABLE} = true, or have NVIDIA's toolkit make its CDI devices and delete the pods from before"
        return fail(*cut(broken), hint=ways)
    if blind := told.get("blind"):
        return warn(*cut(blind), hint=f"add the component {_STRICT}, unless the plugin gets the driver in another way")
    if open_to_all := told.get("open"):
        hint = (
            f"add the component {_STRICT}, then set {_VARIABLE} = false: containers with a share do without it there, "
            "those of other device plugins may not"
        )
        return warn(*cut(open_to_all), hint=hint)
    if silent := told.get("silent"):
        return unknown(f"no settings of NVIDIA's toolkit can be read on {', '.join(cut(silent))}: look at {_VARIABLE}")
    return OK if "right" in told else not_applicable(_NO_DRIVER)


def _settings_of(on: Installation, node: SeenNode) -> tuple[str, str]:
    """Say how the toolkit of a node is set up, in a word and in a sentence, or the node's name."""
    toolkit = node.state.toolkit if node.state else None
    if toolkit is None or toolkit.accepts_variable is None:
        return ("silent" if node.has_driver else "none"), node.name
    if toolkit.accepts_variable:
        what = "open" if toolkit.variable_needed is False else "right"
        return what, f"{node.name}: any pod gets the GPUs that it names in NVIDIA_VISIBLE_DEVICES"
    if toolkit.variable_needed:
        return "needed", f"{node.name}: {_VARIABLE} = false, and containers get their GPU by the variable there"
    what = "blind" if _plugin_is_unprivileged(on, node) else "right"
    return what, f"{node.name}: {_VARIABLE} = false, so the plugin gets no NVML when it starts the next time"


def _should_say(node: SeenNode, gpu: Gpu) -> bool:
    """Whether a compute mode is missing: MIG instances of older drivers have none."""
    return not gpu.compute_mode and not gpu.is_instance and node.has_driver


def _plugin_is_unprivileged(on: Installation, node: SeenNode) -> bool:
    """Whether the plugin's pod on a node is there, and is one from which the toolkit takes no variable then."""
    containers = [
        container
        for pod in parts(on.seen, "plugin")
        if pod.spec.node_name == node.name
        for container in pod.spec.containers
    ]
    allowed = (one.security_context for one in containers)
    return bool(containers) and all(_NAMING.isdisjoint(one.capabilities.add) and not one.privileged for one in allowed)


RUNTIMES: Final = (
    Check(
        name="compute-mode",
        says="GPUs are in the compute mode of their strategy",
        page=_PAGE,
        judge=compute_modes,
        rests_on=(STATES,),
    ),
    Check(
        name="drivers",
        says="nodes have one driver, and it is new enough",
        page=_PAGE,
        judge=drivers,
        rests_on=(STATES,),
    ),
    Check(
        name="toolkit-version", says="NVIDIA's toolkit is new enough", page=_PAGE, judge=toolkits, rests_on=(STATES,)
    ),
    Check(
        name="toolkit-settings",
        says="NVIDIA's toolkit is set up for shares",
        page=_PAGE,
        judge=toolkit_settings,
        rests_on=(STATES,),
    ),
    BY_CDI,
)
