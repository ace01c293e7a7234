"""
What a share is of: a GPU, or a MIG instance with a profile, which is a GPU of its own to whoever is on it.

A profile is called as NVIDIA calls it, 1g.10gb or 1g.10gb+me. A plus sign can stand in no resource's name, so a dot
takes its place there, as in the names of NVIDIA's own plugin: nvidia.com/mig-1g.10gb.me.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Final

from policies.contract import SharingStrategy
from policies.form import form

GPU_DEVICE: Final = "gpu"
NO_PROFILE: Final = ""  # of a whole GPU
DEVICE_PREFIX: Final = "mig-"
RESOURCE_INFIX: Final = "-mig-"  # between the name of a resource of GPUs and the profile

_LONGEST_NAME = 63  # of a resource, behind the slash
LONGEST_PROFILE: Final = 20  # characters; NVIDIA's have 13 at most, such as 1c.3g.40gb
# Slices of a compute instance, slices of the GPU, memory, and what else NVIDIA tells profiles apart by: +me, +gfx, -me.
_ATTRIBUTES = r"([{signs}][a-z][a-z0-9]{{0,7}}){{0,2}}"
_SIZE = r"([1-9][0-9]?c[.])?[1-9][0-9]?g[.][1-9][0-9]{0,3}gb"
PROFILE_PATTERN: Final = _SIZE + _ATTRIBUTES.format(signs=".-")
_WRITTEN_PATTERN: Final = _SIZE + _ATTRIBUTES.format(signs="+.-")
_PROFILE = re.compile(PROFILE_PATTERN, re.ASCII)

ProfileName = Annotated[
    str,
    form("a profile of MIG instances", "1g.10gb", pattern=_WRITTEN_PATTERN, max_length=LONGEST_PROFILE),
]
DeviceName = Annotated[
    str,
    form(
        "gpu, or mig- and the profile of MIG instances",
        "mig-1g.10gb",
        pattern=rf"{GPU_DEVICE}|{DEVICE_PREFIX}{_WRITTEN_PATTERN}",
        max_length=len(DEVICE_PREFIX) + LONGEST_PROFILE,
    ),
]


def profile_of(written: str) -> str | None:
    """Read a profile, with a dot for each plus sign; None if it is none."""
    profile = written.replace("+", ".")
    return profile if len(profile) <= LONGEST_PROFILE and _PROFILE.fullmatch(profile) else None


def read_device(text: str) -> str | None:
    """Read what a share is to be of: the profile of an instance, empty for a GPU; None if it is neither."""
    if text == GPU_DEVICE:
        return NO_PROFILE
    return profile_of(text.removeprefix(DEVICE_PREFIX)) if text.startswith(DEVICE_PREFIX) else None


def device_name(profile: str) -> str:
    """Write what a share is of, as policies and annotations name it."""
    return f"{DEVICE_PREFIX}{profile}" if profile else GPU_DEVICE


def resource_of(resource: str, profile: str) -> str:
    """Name the resource of instances with a profile, where *resource* is that of GPUs."""
    return f"{resource}{RESOURCE_INFIX}{profile}" if profile else resource


def profile_in(name: str, resource: str) -> str | None:
    """
    Read the profile in the *name* of a resource, where *resource* is that of GPUs, which has none; None if neither.

    It may be none that there is: whatever begins like the resource of a profile is ours.
    """
    if name == resource:
        return NO_PROFILE
    begins = resource + RESOURCE_INFIX
    return (name.removeprefix(begins) or "?") if name.startswith(begins) else None


def fault_of_names(names: Mapping[SharingStrategy, str], *, has_instances: bool) -> str:
    """Say which name of GPUs goes not with those of MIG instances; empty if all do."""
    for strategy, name in names.items():
        other = next((one for one in names.values() if profile_in(one, name)), "")
        if other:
            return f"resourceNames has {other}, a name of MIG instances beside {name}: give it another"
        room = _LONGEST_NAME - len(RESOURCE_INFIX) - LONGEST_PROFILE
        if has_instances and len(name.partition("/")[2]) > room:
            return (
                f"resourceNames.{strategy} {name} leaves no room for the profile of MIG instances: write at most "
                f"{room} characters behind the slash"
            )
    return ""
