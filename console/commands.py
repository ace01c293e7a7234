"""`gpu-share top`, `gpu-share doctor` and `gpu-share explain`: a cluster, by the user's own kubeconfig."""

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from program.front import UNUSABLE, end
from program.options import TEXT, context_option, kubeconfig_option, option

if TYPE_CHECKING:
    from console.api_server import ApiServer


class _Seconds(click.FloatRange):
    """Seconds between two numbers: "nan" is none, though it is neither too small nor too large."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read *value*."""
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value} is not a number of seconds", param, ctx)
        return seconds


@click.command(short_help="Show the GPUs of a cluster, and who is on them.")
@kubeconfig_option
@context_option
@option(
    "--namespace",
    "-n",
    of="top",
    type=TEXT,
    default="",
    metavar="NAME",
    help="Pods of this namespace alone; else of all.",
)
@option("--node", of="top", type=TEXT, default="", metavar="NAME", help="This node alone.")
@click.option("--once", is_flag=True, help="Show it once. Without a terminal, or on a dumb one, it is always so.")
@option(
    "--every-seconds",
    of="top",
    type=_Seconds(0.5, 3600),
    default=2.0,
    help="Seconds between two looks; more where a look takes long.",
)
@option("--output", "-o", of="top", type=click.Choice(["text", "wide", "json"]), default="text", help="Output format.")
def top(
    *,
    kubeconfig: Path | None,
    context: str,
    namespace: str,
    node: str,
    once: bool,
    every_seconds: float,
    output: Literal["text", "wide", "json"],
) -> None:
    """
    Show each node's GPUs as bars cut into tenants, and pods with their shares, live.

    It asks the API server of your kubeconfig, and through its proxy the nodes, by your rights: those of the ClusterRole
    and the Role gpu-share-viewer. What it cannot see it names, with the right by which it could. A figure that nobody
    knows is "-", never 0.

    Exits with 1 if nothing can be seen, with 2 if no cluster is configured.
    """
    from console.top.command import run

    api = connected(kubeconfig, context)
    sys.exit(run(api, namespace=namespace, node=node, output=output, every_seconds=None if once else every_seconds))


def connected(kubeconfig: Path | None, context: str) -> "ApiServer":
    """Connect to the API server of a kubeconfig, or end with a sentence."""
    from console.kubeconfig import NoClusterError, connect

    try:
        return connect(kubeconfig=kubeconfig, context=context)
    except NoClusterError as error:
        end(str(error), UNUSABLE)


@click.command(short_help="Check an installation, or with --pre a cluster before it.")
@kubeconfig_option
@context_option
@option(
    "--namespace",
    "-n",
    of="doctor",
    type=TEXT,
    default="",
    metavar="NAME",
    help="Namespace in which a pod is tried, of which nothing is created; else that of the context.",
)
@click.option("--pre", is_flag=True, help="What must be so before gpu-share is installed.")
@option("--output", "-o", of="doctor", type=click.Choice(["text", "json"]), default="text", help="Output format.")
def doctor(
    *, kubeconfig: Path | None, context: str, namespace: str, pre: bool, output: Literal["text", "json"]
) -> None:
    """
    Say in a line for each check what is in order, what is odd, and what is wrong and how to mend it.

    It changes nothing. What your rights do not show it names, with the right by which it could.

    Exits with 1 if a check failed, with 2 if no cluster is configured.
    """
    from console.doctor.command import run
    from console.words import Shown

    api = connected(kubeconfig, context)
    api.namespace = Shown(namespace) or api.namespace
    sys.exit(run(api, pre=pre, output=output))


@click.command(short_help="Explain a pod: what led to it as it is, and what to do.")
@click.argument("name", type=TEXT, metavar="POD|KIND/NAME")
@kubeconfig_option
@context_option
@option(
    "--namespace",
    "-n",
    of="explain",
    type=TEXT,
    default="",
    metavar="NAME",
    help="Namespace; else that of the context.",
)
@option("--output", "-o", of="explain", type=click.Choice(["text", "json"]), default="text", help="Output format.")
def explain(
    *, name: str, kubeconfig: Path | None, context: str, namespace: str, output: Literal["text", "json"]
) -> None:
    """
    Say what led to a pod as it is: what it asked for, what it was granted and why, and what is wrong with it.

    That is: on which GPU it is and with whom, what holds it to its share and what it takes, why it waits or failed.

    A Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or CronJob stands for its pods, or for the denial if there are
    none. Of more than 20 pods, one of each state and revision is explained, those with trouble first.

    Exits with 1 if there is no such pod, with 2 if no cluster is configured.
    """
    from console.explain.command import run

    api = connected(kubeconfig, context)
    sys.exit(run(api, name, namespace=namespace or api.namespace, output=output))
