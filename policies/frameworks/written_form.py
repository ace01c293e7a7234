"""How a memory setting is written, and why it would be found nowhere, or in what is another's."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from policies.contract import DRIVER_CAPABILITIES, is_reserved
from policies.form import form

_LONGEST = 253  # of a name: what looks for many at once takes them apart by a call for each character

ImageName = Annotated[
    str,
    form(
        "a glob of at most 253 characters for the end of an image's name, without its tag",
        "vllm-openai",
        pattern=r"([^\s/]+/)*[^\s/:@]+",
        max_length=_LONGEST,
    ),
]
OptionName = Annotated[  # of one letter, such as `-m` and `-c`, everybody has them
    str,
    form(
        "an option of two letters or more, 128 at most",
        "--gpu-fraction",
        pattern=r"--?[A-Za-z][A-Za-z0-9_-]{1,127}",
    ),
]
Shortest = Annotated[
    str | None, Meta(description="The shortest abbreviation of `argument` that the program's parser takes for it.")
]
Separator = Annotated[
    str, form("a comma or a semicolon", ",", pattern="[,;]?"), Meta(description="Between the settings of a variable.")
]
VariableName = Annotated[
    str,
    form(
        "the name of a variable, of at most 253 characters",
        "GPU_MEMORY",
        pattern=r"[A-Za-z_][A-Za-z0-9_]*",
        max_length=_LONGEST,
    ),
]
SettingValue = Annotated[
    str,
    form(
        "a string of at most 253 characters with one of {fraction}, {percent} and {percentLeft}",
        "{fraction}",
        pattern=r"[^{}]*\{(fraction|percent|percentLeft)\}[^{}]*",
        max_length=_LONGEST,
    ),
    Meta(description="The value, with exactly one of {fraction} (0.2), {percent} (20), {percentLeft} (80, whole)."),
]
ConstantValue = Annotated[str, form("a string of at most 1024 characters", "true", max_length=1024)]
VariablePrefix = Annotated[
    str,
    form(
        "how names of variables begin, in at most 253 characters",
        "SM_VLLM_",
        pattern=r"[A-Za-z_][A-Za-z0-9_]*",
        max_length=_LONGEST,
    ),
]
Program = Annotated[
    str,
    form(
        "a command line of at most 253 characters with single spaces",
        "vllm serve",
        pattern=r"\S+( \S+)*",
        max_length=_LONGEST,
    ),
]
OtherProgram = Annotated[
    str,
    form(
        "two words or more with single spaces, of at most 253 characters",
        "vllm bench",
        pattern=r"\S+( \S+)+",
        max_length=_LONGEST,
    ),
]


def canonical(option: str) -> str:
    """Write an option as it is looked up: without its first dashes, and with dashes for underscores."""
    return option.lstrip("-").replace("_", "-")


def check_name(argument: str | None, variable: str | None, shortest: str | None) -> None:
    """
    Check the name of a setting.

    Raises:
        ValueError: If something is wrong with it, with the field in front.
    """
    if (argument is None) == (variable is None):
        raise ValueError("expected one of argument and variable: give exactly one")
    short = canonical(shortest or "")
    if shortest is not None and not (short and canonical(argument or "").startswith(short)):
        raise ValueError("shortest is no abbreviation of argument: write how it begins, or leave it out")


def check_value(value: str, begin: str, separator: str, argument: str | None) -> None:
    """
    Check the *value* of a setting, which has *begin* before its number.

    Raises:
        ValueError: If something is wrong with it, with the field in front.
    """
    if value != value.strip():
        raise ValueError("value begins or ends with a space, which no program hands on: remove it")
    if separator and (argument is not None or separator in value):
        raise ValueError("separator is what stands between the settings in a variable, and in none: correct it")
    if separator and (not begin or value.split() != [value]):
        raise ValueError("value of one setting among several has its name before the number, and no space: write it so")


def check_texts(variable: str | None, begins: str, harmless: Iterable[str]) -> None:
    """
    Check what is looked for in the value of a variable, in which spaces mean nothing.

    Raises:
        ValueError: If something could never be found, with the field in front.
    """
    if variable is not None and begins.split() not in ([], [begins]):
        raise ValueError("begins has a space, which means nothing in a variable: remove it")
    if variable is not None and any(text.split() not in ([], [text]) for text in harmless):
        raise ValueError("harmless has a space, which means nothing in a variable: remove it")


def check_memory_variable(variable: str) -> None:
    """
    Check that a *variable* may be a memory setting.

    Raises:
        ValueError: If it is another's.
    """
    check_reserved(variable)
    if variable == DRIVER_CAPABILITIES:
        raise ValueError(f"{variable} says nothing of memory, and pods under MPS are denied for it: name another")


def check_reserved(variable: str) -> None:
    """
    Check that a *variable* is not the device plugin's.

    Raises:
        ValueError: If it is.
    """
    if is_reserved(variable):
        raise ValueError(f"{variable} is set by the device plugin and reserved: name another")
