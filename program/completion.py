"""`gpu-share completion`: the script by which a shell completes commands, options and their values."""

import click
from click.shell_completion import get_completion_class

from program.front import UNUSABLE, end

_PROGRAM = "gpu-share"
_VARIABLE = "_GPU_SHARE_COMPLETE"  # as click derives it from the program's name


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """
    Print the completion script of SHELL.

    In bash and zsh: source <(gpu-share completion bash). In fish: gpu-share completion fish | source.
    """
    made = get_completion_class(shell)
    if made is None:
        end(f"completion: {shell} is not supported here", UNUSABLE)
    script = made(context.find_root().command, {}, _PROGRAM, _VARIABLE).source()
    click.echo(script, nl=False)
