"""What a framework's memory setting is: the shape of the catalogue's entries, also in `_cluster.yaml`."""

from functools import cache
from typing import Annotated, Final, Literal

from msgspec import Meta

from policies.contract import COMPUTE_CAPABILITIES, NO_FRAMEWORK, VgpuStrategy, is_denied
from policies.form import Section, form
from policies.frameworks.written_form import (
    ConstantValue,
    ImageName,
    OptionName,
    OtherProgram,
    Program,
    Separator,
    SettingValue,
    Shortest,
    VariableName,
    VariablePrefix,
    check_memory_variable,
    check_name,
    check_reserved,
    check_texts,
    check_value,
)

# Of each container: with what comes with its share, they are no more than a pod may have more by its grant.
_MOST_CONSTANTS: Final = 8
_MOST_ALIKE: Final = 4


class Spelling(Section, frozen=True, kw_only=True):
    """One way to write a memory setting: exactly one of `argument` and `variable`."""

    argument: OptionName | None = None
    variable: VariableName | None = None
    value: SettingValue = "{fraction}"
    separator: Separator = ""
    shortest: Shortest = None

    def __post_init__(self) -> None:
        """Check what the types cannot say."""
        check_name(self.argument, self.variable, self.shortest)
        check_value(self.value, self.around[0], self.separator, self.argument)
        check_memory_variable(self.variable or "")

    @property
    def name(self) -> str:
        """The argument or the variable."""
        return self.argument or self.variable or ""

    @property
    def kind(self) -> str:
        """Which placeholder the value has: fraction, percent or percentLeft."""
        return _parts(self.value)[1]

    @property
    def around(self) -> tuple[str, str]:
        """What stands before and after the placeholder."""
        before, _, after = _parts(self.value)
        return before, after

    def write(self, number: str) -> str:
        """Fill the placeholder."""
        before, _, after = _parts(self.value)
        return f"{before}{number}{after}"


@cache
def _parts(value: str) -> tuple[str, str, str]:
    before, _, rest = value.partition("{")
    kind, _, after = rest.partition("}")
    return before, kind, after


class Override(Section, frozen=True, kw_only=True):
    """A setting under which a framework takes memory without regard to its fraction: `argument` or `variable`."""

    argument: OptionName | None = None
    variable: VariableName | None = None
    shortest: Shortest = None
    general: Annotated[
        bool,
        Meta(
            description="Other programs have an argument of this name too: it counts only where the framework is known "
            "to run, or its name is in the image's or on the command line."
        ),
    ] = False
    begins: Annotated[
        str, Meta(description="What it begins with, if the variable holds several settings.", examples=["backend:"])
    ] = ""
    separator: Separator = ""
    harmless: Annotated[
        tuple[str, ...],
        Meta(description="The values under which the fraction still counts.", examples=[["native"]]),
    ] = ()
    source: Annotated[
        str, Meta(description="Where this is documented.", min_length=1, examples=["https://example.com/docs"])
    ]

    def __post_init__(self) -> None:
        """Check what the types cannot say."""
        check_name(self.argument, self.variable, self.shortest)
        check_texts(self.variable, self.begins, self.harmless)
        check_memory_variable(self.variable or "")

    @property
    def name(self) -> str:
        """The argument or the variable."""
        return self.argument or self.variable or ""


class Memory(Section, frozen=True, kw_only=True):
    """The setting that says how much memory a framework may take."""

    of: Annotated[
        Literal["total", "free"],
        Meta(description="What the value multiplies: the GPU's memory, or what is free at start."),
    ] = "total"
    spellings: Annotated[
        tuple[Spelling, ...],
        Meta(description="The first is what is set; the others are recognised.", min_length=1),
    ]
    of_free: (
        Annotated[
            str,
            form("a decimal below 1 in quotes", "0.8", pattern=r"0\.[0-9]{1,3}"),
            Meta(
                description="For `of: free`: the part of the free memory to set under MPS, where free is the share. "
                "null: the program's own default is right."
            ),
        ]
        | None
    ) = None
    since: (
        Annotated[
            str,
            form("a major and minor version in quotes", "2.10", pattern=r"[0-9]+\.[0-9]+"),
            Meta(
                description="The first version that knows the setting; older ones fail on it, so it is set only if the "
                "image's tag says at least this."
            ),
        ]
        | None
    ) = None
    needs_headroom: Annotated[
        bool,
        Meta(
            description="The program does not start unless all of its fraction is free, and under MPS a CUDA context "
            "takes some of it first: warn where neither the policy's headroom nor the program's own setting leaves any."
        ),
    ] = False
    exclusive: Annotated[
        bool,
        Meta(
            description="The program does not start when two of the variables that are written like the first have a "
            "value, and takes an empty one for none: beside the one that is set, the others are set empty."
        ),
    ] = False
    overridden_by: Annotated[
        tuple[Override, ...],
        Meta(description="Settings with which it is ignored: denied where nothing else limits the memory."),
    ] = ()

    def __post_init__(self) -> None:
        """Check what the types cannot say."""
        if self.exclusive and (self.spellings[0].separator or not (self.spellings[0].variable and self.alike[1:])):
            raise ValueError("exclusive is about two variables that are no lists, the first among them: name both")
        if self.exclusive and len(self.alike) > _MOST_ALIKE:
            raise ValueError(f"exclusive is about {len(self.alike)} variables, at most {_MOST_ALIKE} are allowed")

    @property
    def alike(self) -> list[Spelling]:
        """The variables that are written like the first spelling, by any of which the program may be told."""
        first = self.spellings[0]
        form = (first.value, first.separator)
        return [one for one in self.spellings if one.variable and (one.value, one.separator) == form]


class Constant(Section, frozen=True, kw_only=True):
    """A variable that is set as it is, unless the user has set it. An entry has at most 8 of them."""

    variable: VariableName
    value: ConstantValue
    strategies: tuple[VgpuStrategy, ...] = ("mps", "time-slicing")

    def __post_init__(self) -> None:
        """Check what the types cannot say."""
        check_reserved(self.variable)
        if any(is_denied(self.variable, self.value, under=one) for one in self.strategies):
            most = ", ".join(COMPUTE_CAPABILITIES)
            raise ValueError(
                f"value has more than {most}: MPS limits no graphics, so pods under it are denied for that: "
                "write no more than these, or strategies: [time-slicing]"
            )


class Framework(Section, frozen=True, kw_only=True):
    """One framework of the catalogue."""

    name: Annotated[
        str,
        form(
            "at most 63 lower-case letters, digits, dots and dashes",
            "vllm",
            pattern=r"[a-z0-9][a-z0-9.-]*",
            max_length=63,
        ),
    ]
    images: Annotated[
        tuple[ImageName, ...],
        Meta(description="Globs for the end of the image's repository: `vllm-openai` fits any registry."),
    ] = ()
    version_images: Annotated[
        tuple[ImageName, ...],
        Meta(description="Globs for those images whose tags are versions of the framework itself."),
    ] = ()
    programs: Annotated[
        tuple[Program, ...],
        Meta(description="Command lines it is started with, such as `vllm serve` or `python -m package.module`."),
    ] = ()
    other_programs: Annotated[
        tuple[OtherProgram, ...],
        Meta(description="Command lines of two words or more, like one of `programs`, that do not take its argument."),
    ] = ()
    image_takes_arguments: Annotated[
        bool,
        Meta(description="The image's entry point takes the program's arguments and there is no CMD to lose."),
    ] = False
    memory: Annotated[
        Memory | None, Meta(description="null: it needs nothing, it follows the memory that is free.")
    ] = None
    option_prefixes: Annotated[
        tuple[VariablePrefix, ...],
        Meta(
            description="Its server makes options of all variables that begin so, in any case, with dashes or "
            "underscores: those among the settings of `memory` are found however written; an `argument` is none."
        ),
    ] = ()
    constants: Annotated[tuple[Constant, ...], Meta(max_length=_MOST_CONSTANTS)] = ()
    note: Annotated[str, Meta(description="What `preview` tells about it.")] = ""
    source: Annotated[
        str, Meta(description="Where this is documented.", min_length=1, examples=["https://example.com/docs"])
    ]

    def __post_init__(self) -> None:
        """Check what the types cannot say."""
        if self.name == NO_FRAMEWORK:
            raise ValueError(f'"{NO_FRAMEWORK}" is what switches frameworks off: choose another name')
