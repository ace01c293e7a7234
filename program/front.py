"""The front door: a group of commands of which only the one that is called is imported, and one-line errors."""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, BinaryIO, NoReturn

import click

from program.output import OutputError, checked_output
from program.terminal import printable

FAILED = 1  # exit code: denied, unhealthy, or failed
UNUSABLE = 2  # exit code: bad usage, or unreadable input
_NO_THREAD = "can't start new thread"  # of RuntimeError, in Python's words


def end(message: str, code: int) -> NoReturn:
    """Say *message* in one line on stderr, and exit with *code*."""
    click.echo(f"gpu-share: {printable(message)}", err=True)
    sys.exit(code)


def standard_input() -> BinaryIO:
    """Give what is sent to the command; where its input is closed, the command ends."""
    if sys.stdin is None:
        end("standard input is closed: name a file, or send one to standard input", UNUSABLE)
    return sys.stdin.buffer


def failed(command: str, error: Exception | str, code: int) -> int:
    """Say in one line on stderr why *command* failed; give *code* back, for the process to exit with."""
    click.echo(f"gpu-share {command}: {printable(str(error))}", err=True)
    return code


class LazyGroup(click.Group):
    """
    Imports a command when it is called, or when help lists it.

    *rooms* says where each is: `<module>:<name of the command in it>`, by the command's name.
    """

    def __init__(self, *args: Any, rooms: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._rooms = rooms

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name all commands."""
        return sorted({*self._rooms, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none of that name."""
        if cmd_name not in self._rooms:
            return super().get_command(ctx, cmd_name)
        module, _, name = self._rooms[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - the signature is click's
        **extra: Any,
    ) -> Any:
        """Run the command, and exit with its code; what was wrong with a call is said in one line."""
        try:
            with checked_output():
                code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except OutputError as error:
            if error.reason:
                end(f"standard output: {error.reason}", FAILED)
            sys.exit(FAILED)
        except click.ClickException as error:
            if not standalone_mode:
                raise
            if isinstance(error, click.exceptions.NoArgsIsHelpError):
                error.show()
                sys.exit(error.exit_code)
            end(_sentence(error), error.exit_code)
        except click.Abort:
            end("interrupted", FAILED)
        except RuntimeError as error:
            if str(error) != _NO_THREAD:
                raise
            end("no thread can be started: raise the limit of memory (ulimit -v), or that of processes", FAILED)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


def _sentence(error: click.ClickException) -> str:
    """Say what was wrong, and where to look, for errors of usage that do not say it themselves."""
    said = " ".join(error.format_message().split())
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return said
    return f"{said}{'' if said.endswith(('.', '?')) else '.'} See {error.ctx.command_path} --help"
