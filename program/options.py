"""Options that can also be set by the environment, and the types that their values have."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from program.listening import host_and_port

F = TypeVar("F", bound=Callable[..., Any])


class Place(click.Path):
    """A path; an empty text, which a variable of the shell that is not set gives, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take *value*, unless it is empty: Python takes that for the working directory."""
        if not str(value):
            self.fail('expected a path, got ""', param, ctx)
        return super().convert(value, param, ctx)


class Directory(Place):
    """The path of a directory, which may not be there yet."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take *value*, unless it is a file."""
        if os.path.isfile(value):  # noqa: PTH113 - Path's raises where it cannot be seen, which is for the command to say
            self.fail(f'{value} is a file: name its directory, "{Path(value).parent}"', param, ctx)
        return super().convert(value, param, ctx)


class Text(click.ParamType[str]):
    """A text that can be sent to others, such as a name of Kubernetes; a shell may give any bytes."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Take *value*, unless it is not UTF-8, or spaces alone: without these it would be as if it were not given."""
        try:
            str(value).encode()
        except UnicodeEncodeError:
            self.fail(f"{value!a}: must be UTF-8", param, ctx)
        if str(value).isspace():
            self.fail(f"{value!a}: expected a name, got spaces", param, ctx)
        return str(value)


DIRECTORY: Final = Directory()
TEXT: Final = Text()
FILE: Final = Place(path_type=Path, dir_okay=False)
FILE_OR_INPUT: Final = Place(allow_dash=True)
SHIPPED_POLICIES: Final = Path(__file__).parents[1] / "policies" / "files"

_PREFIX = "GPU_SHARE_"


def option(name: str, *more: str, of: str = "", **settings: Any) -> Callable[[F], F]:
    """
    Declare an option that can also be set by the environment: `--bind` by GPU_SHARE_BIND.

    *of* names the command, for an option that means something else in another one: `--output` of status by
    GPU_SHARE_STATUS_OUTPUT.
    """
    words = [*of.split(), *name.removeprefix("--").split("-")]
    variable = _PREFIX + "_".join(words).upper()
    return click.option(name, *more, envvar=variable, show_envvar=True, show_default=True, **settings)


policies_option = option("--policies", type=DIRECTORY, default=SHIPPED_POLICIES, help="Directory of policy files.")

# Of whoever looks at a cluster by the rights of a user.
kubeconfig_option = option("--kubeconfig", of="console", type=FILE, help="Kubeconfig; else as kubectl finds it.")
context_option = option(
    "--context", of="console", type=TEXT, default="", metavar="NAME", help="Context of the kubeconfig."
)


class Address(click.ParamType[tuple[str, int]]):
    """HOST:PORT, such as 0.0.0.0:9406 or [::]:9406; an empty text is no address."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read *value*; None if it is empty."""
        if not isinstance(value, str):
            return value
        if not value.strip():
            return None
        address = host_and_port(value.strip())
        if address is None:
            self.fail(f"{value!a}: expected HOST:PORT, such as 0.0.0.0:9406 or [::]:9406", param, ctx)
        return address


ADDRESS: Final = Address()

metrics_option = option(
    "--metrics-bind",
    type=ADDRESS,
    default=None,
    metavar="HOST:PORT",
    help="Address and port for Prometheus, GET /metrics; without it nothing is served.",
)


class Several(click.ParamType[frozenset[Any]]):
    """A list with commas, each of whose items *read* accepts; `none` is the empty list."""

    name = "list"

    def __init__(self, read: Callable[[str], Any], expected: str) -> None:
        """Read items by *read*, which raises KeyError or ValueError; *expected* says to users what they are."""
        self._read = read
        self._expected = expected

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[Any]:
        """Read *value*; an empty text is an empty list, too."""
        if isinstance(value, frozenset):
            return value
        if str(value).strip() == "none":
            return frozenset()
        try:
            return frozenset(self._read(item.strip()) for item in str(value).split(",") if item.strip())
        except (KeyError, ValueError):
            self.fail(f"{value!a}: expected {self._expected}, separated by commas", param, ctx)
