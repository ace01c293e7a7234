"""
What the kubelet makes of `$(NAME)` in the words and variables of a container, as far as admission can read it.

The rules are those of Kubernetes: `$(NAME)` is replaced once, from what stands before it in `env`, or in `command` and
`args` from all of it; `$$` is a dollar; a name that nobody sets stays as it is written.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from policies.contract import SHARE_FRACTION, SHARE_MEMORY_MIB, is_reserved
from policies.frameworks.allowance import Allowance
from policies.pod import Container, Variable

# In place of what admission cannot read. No argument and no variable of a process can hold the character NUL.
UNREAD: Final = "\0"
ANYTHING: Final = "\0\1"  # of a ConfigMap, say: it may be an option
A_VALUE: Final = "\0\2"  # a number, or a name in Kubernetes' form: it cannot begin an option
A_NAME: Final = "\0\b"  # as A_VALUE, and never empty
A_NUMBER: Final = "\0\16"  # as A_VALUE, of digits alone, behind a dash or not, or empty where a command fails
TOLD: Final = "\0\3"  # the share, as the device plugin tells it
KINDS: Final = r"\1-\x08\x0e\x0f"  # what stands behind UNREAD in these and other marks, for a class of a pattern

_RESERVED: Final = {SHARE_FRACTION: TOLD, SHARE_MEMORY_MIB: A_NUMBER}  # what the device plugin sets
_MOST_PREFIXES = 16  # of envFrom that are looked at
# Of the pod, which has each of them before a container of it starts.
_NAMES = frozenset({"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"})
_KEY = re.compile(r"[-._A-Za-z0-9]+")
_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


class Variables:
    """The variables of one container, as its command line sees them. They are read when first asked for."""

    __slots__ = (
        *("_allowance", "_container", "_found", "_prefixes", "_texts", "_told", "_values"),
        *("check_settings", "copy", "work"),
    )

    def __init__(self, container: Container, allowance: Allowance) -> None:
        self._container = container
        self._allowance = allowance
        self.work, self.copy = allowance.work, allowance.copy  # of shells' texts
        self.check_settings = allowance.check_settings
        self._prefixes = {one.prefix or "" for one in container.env_from or ()}
        self._values: dict[str, str] | None = None
        self._texts: list[str] = []
        self._told: dict[str, str] = {}
        self._found: dict[str, str | None] = {}  # what names were looked up for, since they come again and again

    def in_words(self, text: str) -> str:
        """Expand a word of `command` or `args`."""
        return self._expand(text, self.of) if "$(" in text or "$$" in text else text

    def at(self, index: int) -> str:
        """Return the value of the entry of `env` at *index*."""
        self._read()
        return self._texts[index]

    def of(self, name: str) -> str | None:
        """Return the value of the variable *name*; None if nobody sets it, as far as the pod says."""
        if name not in self._found:
            self._found[name] = self._look_up(name)
        return self._found[name]

    def _look_up(self, name: str) -> str | None:
        if is_reserved(name):  # the pod's own is denied or removed, and the device plugin sets it
            if self._may_come_from_all(name):
                return ANYTHING
            return _RESERVED.get(name, A_VALUE)
        self._read()
        assert self._values is not None  # noqa: S101 - for the type checker
        value = self._told.get(name, self._values.get(name))
        return ANYTHING if value is None and self._may_come_from_all(name) else value

    def tell(self, name: str, value: str) -> None:
        """Take note of a variable that is set for the container."""
        self._told[name] = value
        self._found.pop(name, None)

    def values(self) -> Sequence[str]:
        """Return what the variables hold."""
        self._read()
        return self._texts

    def _may_come_from_all(self, name: str) -> bool:
        """Whether an envFrom may set *name*: a key of a ConfigMap or Secret behind its prefix."""
        if len(self._prefixes) > _MOST_PREFIXES:
            return True
        return any(name.startswith(one) and _KEY.fullmatch(name, len(one)) for one in self._prefixes)

    def in_shell(self, name: str) -> str | None:
        """Return what a shell makes of $NAME; None if nobody sets it, as far as the pod says."""
        value = self.of(name)
        return value if value is None else self._allowance.write(value)

    def rewrite(self, text: str) -> str:
        """Count a text that is written anew."""
        return self._allowance.rewrite(text)

    def read(self, text: str) -> None:
        """Count the references of a shell's text."""
        self._allowance.read(text.count("$"))

    @property
    def is_spent(self) -> bool:
        """Whether the pod's shells' texts are too long to be read."""
        return self._allowance.is_spent

    def _read(self) -> None:
        if self._values is not None:
            return
        values: dict[str, str] = {}

        def value_before(name: str) -> str | None:
            if name in values:
                return values[name]
            return ANYTHING if self._may_come_from_all(name) else None

        for variable in self._container.env or ():
            text = variable.value or ""
            if "$(" in text or "$$" in text:
                text = self._expand(text, value_before)
            elif not text:
                text = _source(variable)
            self._texts.append(text)
            if not is_reserved(variable.name):
                values[variable.name] = text
        self._values = values

    def _expand(self, text: str, value_of: Callable[[str], str | None]) -> str:
        references, dollars = text.count("$("), text.count("$$")
        self._allowance.read(references + dollars)
        if references == 1 and not dollars:  # as in almost every text that has one
            before, _, behind = text.partition("$(")
            name, is_one, behind = behind.partition(")")
            value = value_of(name) if is_one else None
            return text if value is None else f"{before}{self._allowance.write(value)}{behind}"
        end = text.rfind(")") + 1  # behind it nothing is a reference, and looking for one would never end

        def replaced(match: re.Match[str]) -> str:
            name = match[1]
            if name is None:
                return "$"
            value = value_of(name)
            return match[0] if value is None else self._allowance.write(value)

        return _REFERENCE.sub(replaced, text[:end]) + text[end:].replace("$$", "$")


def either(one: str, other: str) -> str:
    """Return the mark for what is written by both of two commands, or one of them; "" is nothing."""
    found = without_implied([mark for mark in {one, other} if mark])
    return ANYTHING if len(found) > 1 else "".join(found)


def without_implied(values: list[str]) -> list[str]:
    """Leave out a number among values of which another may be one as well: both may be the same."""
    return [one for one in values if one != A_NUMBER] if A_NUMBER in values and A_VALUE in values else values


def _source(variable: Variable) -> str:
    """Stand in for what a variable takes from elsewhere."""
    source = variable.value_from
    if source is None:
        return ""
    field = source.field_ref
    if field is not None and field.field_path in _NAMES:
        return A_NAME
    if source.resource_field_ref is not None:
        return A_NUMBER
    if field and not field.field_path.startswith("metadata.annotations"):
        return A_VALUE
    return ANYTHING
