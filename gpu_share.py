"""The front door: the `gpu-share` command. Each subcommand's room is imported only when it is called."""

import sys
from pathlib import Path

import click

from program.front import FAILED, LazyGroup, end
from program.options import TEXT, context_option, kubeconfig_option, option, policies_option

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
    from webhook.preview.previewed import examples

    made = [
        Example(title=one.title, namespace=one.namespace, pod=one.pod, why=one.why)
        for one in examples(_EXAMPLES, loaded(policies))
    ]
    try:
        run(made, policies=policies, console=Console(soft_wrap=not sys.stdout.isatty()))
    except DemoError as error:
        end(str(error), FAILED)


@main.command(short_help="Serve a page of the cluster on this machine.")
@kubeconfig_option
@context_option
@option(
    "--namespace",
    "-n",
    of="console",
    type=TEXT,
    default="",
    metavar="NAME",
    help="Pods of this namespace alone; else of all.",
)
@option("--port", of="console", type=click.IntRange(0, 65535), default=9480, help="Port on 127.0.0.1; 0 for any.")
def console(*, kubeconfig: Path | None, context: str, namespace: str, port: int) -> None:
    """
    Serve a page on 127.0.0.1: the GPUs of a cluster and who is on them, live, and each pod explained.

    It also has the policies in force, what preview says of a pod, and what changed in the last hour. It asks by your
    rights, as top and explain do, and looks at the cluster only while the page is open. The address that it prints has
    a secret, without which nobody gets in.

    Ends with Ctrl+C. Exits with 1 if the port is taken, with 2 if no cluster is configured.
    """
    from console.commands import connected
    from console.page.command import run
    from webhook.preview.pasted import explained

    sys.exit(run(connected(kubeconfig, context), namespace=namespace, port=port, preview=explained))


if __name__ == "__main__":
    main()
