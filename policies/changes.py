"""What can be changed in one container of a pod, as values. Who carries them out is not said here."""

import msgspec


class AppendArgument(msgspec.Struct, frozen=True, gc=False):
    """Append to `args`, which is created if it is not there."""

    text: str


class ReplaceArgument(msgspec.Struct, frozen=True, gc=False):
    """Replace one word of the command line."""

    field: str  # `command` or `args`
    index: int
    text: str


class AddVariable(msgspec.Struct, frozen=True, gc=False):
    """Append to `env`, which is created if it is not there."""

    name: str
    value: str


class ReplaceVariable(msgspec.Struct, frozen=True, gc=False):
    """Replace one entry of `env` by a plain value."""

    index: int
    name: str
    value: str


class RemoveVariable(msgspec.Struct, frozen=True, gc=False):
    """Remove one entry of `env`."""

    index: int
    name: str


class RemoveMount(msgspec.Struct, frozen=True, gc=False):
    """Remove one entry of `volumeMounts`."""

    index: int


class SetMountField(msgspec.Struct, frozen=True, gc=False):
    """Set one field of an entry of `volumeMounts`."""

    index: int
    field: str  # `readOnly`, or `recursiveReadOnly` for what is mounted below it
    value: bool | str


Change = AppendArgument | ReplaceArgument | AddVariable | ReplaceVariable | RemoveVariable | RemoveMount
