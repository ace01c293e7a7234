"""
The keys of NVIDIA's device plugin, and what each of their values becomes; those of `sharing` are in `nvidia_sharing`.

From api/config/v1 of https://github.com/NVIDIA/k8s-device-plugin at v0.20; cmd/nvidia-device-plugin/main.go has the
defaults, and internal/plugin/server.go what a container receives for each.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from policies.contract import Handover
from policies.migration.findings import Becomes, always, ignored, none, option, pods, same

DeviceList = Literal["envvar", "volume-mounts", "cdi-annotations", "cdi-cri"]

VERSION: Final = "version"
DEVICE_LIST: Final = "flags.plugin.deviceListStrategy"
PASS_DEVICES: Final = "flags.plugin.passDeviceSpecs"  # noqa: S105 - a key
ALLOCATION: Final = "flags.plugin.sharedDevicesAllocationPolicy"
FAIL_ON_INIT: Final = "flags.failOnInitError"


class Key(msgspec.Struct, frozen=True):
    """The values that a key may have, and what they become."""

    of: Any  # the type of the values
    becomes: Mapping[object, Becomes] | Becomes  # by value, or for all of them
    expected: str = ""  # completes "expected ...", where the type does not say it


_MIG = (
    "gpu-share shares them with mig: shared in nodes of _cluster.yaml, and offers whole ones with mig: whole (pods "
    "name the profile then); nodes left to NVIDIA's plugin keep them, and strategy: partition grants them"
)
_GFD = none("gpu-share labels no nodes: GPU feature discovery can go on running as it is")
_RUNTIME = always("the plugin finds the driver through NVIDIA's container runtime, and needs no path")
_RESOURCES = "a list of entries with pattern and name"
_OFF = always("it is off here too")


def _variable(name: str, value: str = "enabled") -> dict[object, Becomes]:
    return {
        True: pods(f"a pod that needs it sets the variable {name}={value} itself, which is all that the key does"),
        False: _OFF,
    }


_DEVICE_LISTS: dict[object, Becomes] = {
    "envvar": same("handover: [envvar], by the variable NVIDIA_VISIBLE_DEVICES"),
    "volume-mounts": none(
        "a list of devices cannot be passed as mounts: with handover: [cdi] a pod cannot choose its GPUs by a variable "
        "either"
    ),
    "cdi-annotations": same("handover: [cdi], a CDI device of the kubelet"),
    "cdi-cri": same("handover: [cdi]"),
}

KEYS: Final[Mapping[str, Key]] = {
    VERSION: Key(Literal["v1"], always("this is the version that is read"), "v1"),
    "flags.migStrategy": Key(
        Literal["none", "single", "mixed"],
        {
            "none": always("GPUs are taken whole"),
            "single": none(f"nvidia.com/gpu can be MIG instances then. {_MIG}"),
            "mixed": none(f"nvidia.com/mig-... are MIG instances. {_MIG}"),
        },
    ),
    FAIL_ON_INIT: Key(
        bool,
        {
            True: always("the plugin ends with an error where there is no GPU"),
            False: option("--wait-for-gpus: the plugin waits for NVML and a GPU"),
        },
    ),
    "flags.mpsRoot": Key(
        str,
        none(
            "gpu-share's MPS daemons have a directory of their own, mps.pipeDirectory, /tmp/nvidia-mps unless it is "
            "set: so the daemons of both can never meet while nodes are moved"
        ),
    ),
    "flags.nvidiaDriverRoot": Key(str, _RUNTIME),
    "flags.nvidiaDevRoot": Key(str, _RUNTIME),
    "flags.gdrcopyEnabled": Key(bool, _variable("NVIDIA_GDRCOPY")),
    "flags.gdsEnabled": Key(bool, _variable("NVIDIA_GDS")),
    "flags.mofedEnabled": Key(bool, _variable("NVIDIA_MOFED")),
    "flags.useNodeFeatureAPI": Key(bool, _GFD),
    "flags.deviceDiscoveryStrategy": Key(
        Literal["auto", "nvml", "tegra"],
        {
            "auto": always("GPUs are found by NVML"),
            "nvml": always("GPUs are found by NVML"),
            "tegra": none("GPUs are found by NVML alone: leave nodes with Tegra GPUs to NVIDIA's plugin"),
        },
    ),
    PASS_DEVICES: Key(
        bool,
        {
            True: same("handover with devices among the ways: the device nodes are passed as well"),
            False: always("device nodes are passed only where handover says so"),
        },
    ),
    DEVICE_LIST: Key(
        DeviceList | list[DeviceList],
        _DEVICE_LISTS,
        "envvar, volume-mounts, cdi-annotations or cdi-cri, or a list of them",
    ),
    "flags.plugin.deviceIDStrategy": Key(
        Literal["uuid", "index"],
        {
            "uuid": always("a container is given the UUID of its GPU"),
            "index": none("a container is given the UUID of its GPU, never its number"),
        },
    ),
    "flags.plugin.cdiAnnotationPrefix": Key(str, none("CDI devices go through the kubelet, not by annotations")),
    "flags.plugin.nvidiaCTKPath": Key(str, none("gpu-share's CDI devices have no hooks: NVIDIA's runtime has them")),
    "flags.plugin.containerDriverRoot": Key(str, _RUNTIME),
    ALLOCATION: Key(
        Literal["distributed", "packed"],
        {
            "distributed": option("--allocation-policy spread: a share goes to the emptiest GPU that has room"),
            "packed": always("--allocation-policy pack, the plugin's default: the fullest GPU that has room"),
        },
    ),
    "flags.gfd.oneshot": Key(bool, _GFD),
    "flags.gfd.noTimestamp": Key(bool, _GFD),
    "flags.gfd.sleepInterval": Key(str | int, _GFD, "a duration such as 60s"),
    "flags.gfd.outputFile": Key(str, _GFD),
    "flags.gfd.machineTypeFile": Key(str, _GFD),
    "resources.gpus": Key(
        list[dict[str, str]],
        ignored("NVIDIA's plugin warns that it does not support own resources, and drops them"),
        _RESOURCES,
    ),
    "resources.mig": Key(
        list[dict[str, str]],
        ignored("NVIDIA's plugin warns that it does not support own resources, and drops them"),
        _RESOURCES,
    ),
    "imex.channelIDs": Key(
        list[Literal[0]],
        pods("a pod that needs an IMEX channel sets NVIDIA_IMEX_CHANNELS=0 itself, which is all that the key does"),
        "[] or [0]",
    ),
    "imex.required": Key(
        bool, {True: none("the plugin does not look for IMEX channels, so a missing one shows in the pod"), False: _OFF}
    ),
}

# What is in force where a key is not written, and is not what gpu-share has by default.
DEFAULTS: Final[Mapping[str, Becomes]] = {
    DEVICE_LIST: same(
        "envvar among the ways of handover, which is what NVIDIA's plugin does by default; gpu-share's default is cdi, "
        "by which no variable of a pod chooses its GPU, nor lifts its limits: write handover: [cdi] where container "
        "runtimes have CDI"
    ),
    ALLOCATION: none(
        "not written, so NVIDIA's plugin spreads replicas over the GPUs (distributed); gpu-share's default is pack, "
        "the fullest GPU that has room, so that larger shares find theirs: --allocation-policy spread for the former"
    ),
}

SECTIONS: Final = frozenset(path.rpartition(".")[0] for path in KEYS) - {""} | {"flags", "sharing"}


def becomes(key: str, value: object) -> list[Becomes]:
    """Say what *value* of *key* becomes: one sentence for each of several."""
    entry = KEYS[key].becomes
    if value == []:
        return [DEFAULTS[key]] if key in DEFAULTS else [always("it is empty, so there is nothing to do")]
    if isinstance(entry, Becomes):
        return [entry]
    values = value if isinstance(value, list) else [value]
    return list(dict.fromkeys(entry[one] for one in values))


def handover(values: Mapping[str, object]) -> tuple[Handover, ...]:
    """Return the ways in which these values hand GPUs over."""
    lists = values.get(DEVICE_LIST, "envvar")
    named = lists if isinstance(lists, list) else [lists]
    by: Handover = "cdi" if any(str(one).startswith("cdi") for one in named) else "envvar"
    return (by, "devices") if values.get(PASS_DEVICES) is True else (by,)


def plugin_options(values: Mapping[str, object]) -> dict[str, str]:
    """Return the variables of the DaemonSet gpu-share-plugin that do what these values say, but for its defaults."""
    options = {}
    if values.get(ALLOCATION) == "distributed":
        options["GPU_SHARE_ALLOCATION_POLICY"] = "spread"
    if values.get(FAIL_ON_INIT) is False:
        options["GPU_SHARE_WAIT_FOR_GPUS"] = "true"
    return options
