"""The commands of `gpu-share` and their options, as click has them."""

from collections.abc import Iterator

import click

from gpu_share import main


def command(name: str) -> click.Command:
    """Find a command of the front door."""
    found = main.get_command(click.Context(main), name)
    assert found is not None
    return found


def options(of: click.Command = main, name: str = "gpu-share") -> Iterator[tuple[str, click.Option]]:
    """List all options of a command and of those below it, each with the words that call its command."""
    for option in of.params:
        if isinstance(option, click.Option):
            yield name, option
    if isinstance(of, click.Group):
        context = click.Context(of)
        for inner in of.list_commands(context):
            found = of.get_command(context, inner)
            assert found is not None
            yield from options(found, f"{name} {inner}")
