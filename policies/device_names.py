"""
What a share can be of: a GPU, a MIG instance with a profile, or a GPU that `nodes` of `_cluster.yaml` gives a name.

Policies and annotations say gpu, mig-1g.10gb or t4. A resource says it after a dash and the word for what follows, so
that it is never another's: gpu-share.dev/vgpu-mig-1g.10gb and gpu-share.dev/vgpu-model-t4. That ending is a *device*
here; it is empty for GPUs without a name.
"""

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Final

from policies.contract import SIZE_RESOURCE_PREFIX, WHOLE_GPU_RESOURCE_PREFIXES, SharingStrategy
from policies.form import form
from policies.mig import LONGEST_PROFILE, PROFILE_PATTERN, WRITTEN_PROFILE_PATTERN, profile_of

GPU_DEVICE: Final = ""  # of all GPUs without a name of their own
_GPU_NAME: Final = "gpu"
_MIG: Final = "mig-"
_MODEL: Final = "model-"
_LONGEST_MODEL: Final = 20  # characters, as a profile has at most
_LONGEST_RESOURCE: Final = 63  # characters behind the slash
_MODEL_PATTERN: Final = rf"(?!{_MIG})[a-z0-9]([-a-z0-9]{{0,{_LONGEST_MODEL - 2}}}[a-z0-9])?"
_MODEL_NAME: Final = re.compile(_MODEL_PATTERN, re.ASCII)
DEVICE_PATTERN: Final = rf"{_MIG}{PROFILE_PATTERN}|{_MODEL}{_MODEL_PATTERN}"

# What `device` of an entry of `nodes` says.
ModelName = Annotated[
    str,
    form(
        f"a name of at most {_LONGEST_MODEL} lower-case letters, digits and dashes, not {_GPU_NAME} and not {_MIG}...",
        "t4",
        pattern=rf"(?!{_GPU_NAME}$){_MODEL_PATTERN}",
        max_length=_LONGEST_MODEL,
    ),
]
# What `devices` of a policy lists.
DeviceName = Annotated[
    str,
    form(
        f"{_GPU_NAME}, a device of nodes in _cluster.yaml, or {_MIG} and the profile of MIG instances",
        "mig-1g.10gb",
        pattern=rf"{_MIG}{WRITTEN_PROFILE_PATTERN}|{_MODEL_PATTERN}",
        max_length=len(_MIG) + LONGEST_PROFILE,
    ),
]

# A pod with one of these beside a share is denied, so a share cannot be one of them; nor can it be a size of DRA's. The
# resource of a device begins with the name and a dash.
_OF_OTHERS: Final = "|".join(
    re.sub("-$", "(-|$)", prefix.replace(".", r"\.")) for prefix in (*WHOLE_GPU_RESOURCE_PREFIXES, SIZE_RESOURCE_PREFIX)
)

# What `resourceNames` gives a strategy.
ResourceName = Annotated[
    str,
    form(
        "a resource outside kubernetes.io that is none of a vendor's own plugin and no gpu-share.dev/share or "
        "gpu-share.dev/share-...",
        "example.com/vgpu",
        pattern=rf"(?!{_OF_OTHERS})"
        r"(?!requests\.)(?!.*kubernetes\.io/)([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)+[a-z0-9]([-a-z0-9]*[a-z0-9])?/"
        r"[A-Za-z0-9]([A-Za-z0-9._-]{0,53}[A-Za-z0-9])?",
        max_length=120,
    ),
]


def read_device(text: str) -> str | None:
    """Read what a share is to be of, as policies and annotations say it; None if there can be no such device."""
    if text == _GPU_NAME:
        return GPU_DEVICE
    if text.startswith(_MIG):
        profile = profile_of(text.removeprefix(_MIG))
        return None if profile is None else of_profile(profile)
    return of_model(text) if _MODEL_NAME.fullmatch(text) else None


def device_name(device: str) -> str:
    """Write a device as policies and annotations name it."""
    return device.removeprefix(_MODEL) or _GPU_NAME


def of_profile(profile: str) -> str:
    """Return the device of MIG instances with a profile; that of GPUs if it is empty."""
    return f"{_MIG}{profile}" if profile else GPU_DEVICE


def of_model(name: str) -> str:
    """Return the device of GPUs that an entry of `nodes` gives a name."""
    return f"{_MODEL}{name}"


def is_instance(device: str) -> bool:
    """Whether the device is a MIG instance, and no GPU."""
    return device.startswith(_MIG)


def is_model(device: str) -> bool:
    """Whether the device is a GPU with a name of its own."""
    return device.startswith(_MODEL)


def profile_of_device(device: str) -> str:
    """Return the profile of a device; empty if it is no MIG instance."""
    return device.removeprefix(_MIG) if is_instance(device) else ""


def resource_of(resource: str, device: str) -> str:
    """Name the resource of a device, where *resource* is that of GPUs without a name."""
    return f"{resource}-{device}" if device else resource


def device_in(name: str, resource: str) -> str | None:
    """
    Read the device in the *name* of a resource, where *resource* is that of GPUs without a name; None if neither.

    It may be none that there is: whatever begins like the resource of a device is ours.
    """
    if name == resource:
        return GPU_DEVICE
    ending = name.removeprefix(f"{resource}-")
    return ending if ending != name and (is_instance(ending) or is_model(ending)) else None


def fault_of_names(names: Mapping[SharingStrategy, str], *, has_instances: bool, models: Collection[str]) -> str:
    """Say which of the resource *names* of GPUs goes not with those of MIG instances and *models*; empty if all do."""
    longest = max((len(_MIG) + LONGEST_PROFILE if has_instances else 0, *map(len, models)))
    room = _LONGEST_RESOURCE - len("-") - longest
    for strategy, name in names.items():
        other = next((one for one in names.values() if device_in(one, name)), "")
        if other:
            kind = "MIG instances" if is_instance(device_in(other, name) or "") else "a device of nodes"
            return f"resourceNames has {other}, a name of {kind} beside {name}: give it another"
        if longest and len(name.partition("/")[2]) > room:
            return (
                f"resourceNames.{strategy} {name} leaves no room for the name of a device, or the profile of MIG "
                f"instances: write at most {room} characters behind the slash"
            )
    return ""
