"""The front door: the `gpu-share` command. Each subcommand's room is imported only when it is called."""

import sys
from pathlib import Path

import click

from program.front import FAILED, LazyGroup, end
from program.options import policies_option

_EXAMPLES = Path(__file__).parent / "policies" / "examples"


@click.group(
    cls=LazyGroup,
    rooms={
        "certs": "certs.commands:certs",
        "completion": "program.completion:completion",
        "mps": "plugin.commands:mps",
        "doctor": "console.commands:doctor",
        "explain": "console.commands:explain",
        "plugin": "plugin.commands:plugin",
        "policy": "policies.commands:policy",
        "preview": "webhook.commands:preview",
        "top": "console.commands:top",
        "webhook": "webhook.commands:webhook",
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="gpu-share")
def main() -> None:
    """Give each pod its share of a GPU: annotate it with gpu-share: "0.2" and change nothing else."""


@main.command(short_help="Run the whole chain here: no cluster, no GPU.")
@policies_option
def demo(*, policies: Path) -> None:
    """Run the whole chain on this machine with example pods: no cluster, no GPU, nothing left running."""
    from rich.console import Console

    from plugin.simulated.demo import Example, run
    from plugin.simulated.demo_processes import DemoError
    from policies.commands import loaded
    from webhook.preview.command import examples

    made = [
        Example(title=one.title, namespace=one.namespace, pod=one.pod, why=one.why)
        for one in examples(_EXAMPLES, loaded(policies))
    ]
    try:
        run(made, policies=policies, console=Console(soft_wrap=not sys.stdout.isatty()))
    except DemoError as error:
        end(str(error), FAILED)


if __name__ == "__main__":
    main()
