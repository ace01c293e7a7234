"""What each of our CDI specifications looks like: one that somebody has edited may not, and a runtime may skip it."""

from typing import Annotated

import msgspec

from plugin.shares.cdi import CDI_VERSION, HIDING_DEVICE, kind

_DEVICE_NAME = rf"\A([A-Za-z][A-Za-z0-9_.:-]*-[1-9][0-9]{{0,3}}of[1-9][0-9]{{0,3}}|{HIDING_DEVICE})\Z"
_Variable = Annotated[str, msgspec.Meta(pattern=r"\A[A-Z_]+=")]


class _Mount(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    host_path: str
    container_path: str
    options: list[str]


class _Edits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    env: Annotated[list[_Variable], msgspec.Meta(min_length=1)]
    mounts: list[_Mount] = []


class _Device(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(pattern=_DEVICE_NAME)]
    edits: _Edits = msgspec.field(name="containerEdits")


class _Specification(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: str = msgspec.field(name="cdiVersion")
    kind: str
    devices: Annotated[list[_Device], msgspec.Meta(min_length=1)]


def is_ours(content: bytes, resource: str) -> bool:
    """Whether that is a specification of *resource* as `cdi` makes it, whatever devices it has."""
    try:
        found = msgspec.json.decode(content, type=_Specification)
    except (ValueError, RecursionError):
        return False
    names = [one.name for one in found.devices]
    return (found.version, found.kind) == (CDI_VERSION, kind(resource)) and len({*names}) == len(names)
