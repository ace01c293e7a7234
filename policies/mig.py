"""
The profiles of MIG instances: each instance is a GPU of its own to whoever is on it.

A profile is called as NVIDIA calls it, 1g.10gb or 1g.10gb+me. A plus sign can stand in no resource's name, so a dot
takes its place there, as in the names of NVIDIA's own plugin: nvidia.com/mig-1g.10gb.me.
"""

import re
from typing import Annotated, Final

from policies.form import form

NO_PROFILE: Final = ""  # of a whole GPU
LONGEST_PROFILE: Final = 20  # characters; NVIDIA's have 14 at most, such as 1g.24gb+me.all
# Slices of the GPU, memory, and what else NVIDIA tells profiles apart by: +me, +gfx, -me. 1c.3g.40gb is a part of one.
_ATTRIBUTES = r"([{signs}][a-z][a-z0-9]{{0,7}}){{0,2}}"
_SIZE = r"[1-9][0-9]?g[.][1-9][0-9]{0,3}gb"
PROFILE_PATTERN: Final = _SIZE + _ATTRIBUTES.format(signs=".-")
WRITTEN_PROFILE_PATTERN: Final = _SIZE + _ATTRIBUTES.format(signs="+.-")
_PROFILE = re.compile(PROFILE_PATTERN, re.ASCII)

ProfileName = Annotated[
    str,
    form("a profile of MIG instances", "1g.10gb", pattern=WRITTEN_PROFILE_PATTERN, max_length=LONGEST_PROFILE),
]


def names_instance(uuid: str) -> bool:
    """Whether NVML's UUID is a MIG instance's, and not a GPU's."""
    return uuid.startswith("MIG-")


def profile_of(written: str) -> str | None:
    """Read a profile, with a dot for each plus sign; None if it is none."""
    profile = written.replace("+", ".")
    return profile if len(profile) <= LONGEST_PROFILE and _PROFILE.fullmatch(profile) else None
