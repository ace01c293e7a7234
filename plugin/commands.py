"""`gpu-share plugin`, `gpu-share plugin status` and `gpu-share mps`: the parts that run on a node."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from plugin.node_options import node_options, state_dir_option
from program.front import UNUSABLE, end
from program.options import DIRECTORY, FILE, Several, option

if TYPE_CHECKING:
    from plugin.telemetry.server import TelemetrySettings

_LARGEST_XID = 0xFFFF
_IS_COMMAND_CALLED = "plugin.is_command_called"


def _telemetry(options: dict[str, Any]) -> "TelemetrySettings":
    """Take the options out that concern who looks at the part: what it does depends on none of them."""
    from plugin.telemetry.server import TelemetrySettings

    return TelemetrySettings(**{name: options.pop(name) for name in ("metrics_bind", "state_bind", "pod_uid")})


def _xid(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    number = int(text[:20])
    if not 1 <= number <= _LARGEST_XID:
        raise ValueError(text)
    return number


class _NodeGroup(click.Group):
    """A group with options of its own. Where a command of it is called, neither they nor their variables are read."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remember whether a command is called."""
        ctx.meta[_IS_COMMAND_CALLED] = bool(args) and args[0] in self.commands
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """List the options that are read now."""
        options = super().get_params(ctx)
        return options if not ctx.meta.get(_IS_COMMAND_CALLED) else [one for one in options if one not in self.params]


@click.group(
    cls=_NodeGroup, invoke_without_command=True, short_help="Advertise and allocate this node's GPUs as vGPUs."
)
@node_options
@option("--simulate", metavar="2xH200|FILE", help="Advertise simulated GPUs instead of NVML's.")
@option(
    "--kubelet-dir",
    type=DIRECTORY,
    default=Path("/var/lib/kubelet/device-plugins"),
    help="Directory of the kubelet's socket and of the plugin's.",
)
@option(
    "--allocation",
    type=click.Choice(["device-plugin", "dra"]),
    default="device-plugin",
    help="Who allocates this node's GPUs, where nodes of _cluster.yaml does not say: the kubelet, or the scheduler.",
)
@option(
    "--kubelet-plugins-dir",
    type=DIRECTORY,
    default=Path("/var/lib/kubelet/plugins"),
    help="Directory of the kubelet's plugins, for --allocation dra.",
)
@option(
    "--kubelet-registrar-dir",
    type=DIRECTORY,
    default=Path("/var/lib/kubelet/plugins_registry"),
    help="Directory in which the kubelet looks for them.",
)
@option(
    "--service-account",
    type=DIRECTORY,
    default=Path("/var/run/secrets/kubernetes.io/serviceaccount"),
    help="Directory of the token for the API server, for --allocation dra.",
)
@option(
    "--allocation-policy",
    type=click.Choice(["pack", "spread"]),
    default="pack",
    help="Which GPU a share goes to: the fullest that fits, or the emptiest; not with --allocation dra.",
)
@option(
    "--fit-guard",
    type=click.Choice(["on", "off"]),
    default="on",
    help="Hide free vGPUs that the scheduler would allocate in vain, since no GPU has room for what it may send.",
)
@option("--cdi-dir", type=DIRECTORY, default=Path("/var/run/cdi"), help="Directory of CDI specifications, ours too.")
@option(
    "--cdi-static-dir",
    type=DIRECTORY,
    default=Path("/etc/cdi"),
    help="Another directory of CDI specifications, which is only read.",
)
@option(
    "--toolkit-config",
    type=FILE,
    default=Path("/etc/nvidia-container-runtime/config.toml"),
    help="Configuration of NVIDIA's container toolkit, of which `gpu-share doctor` is told.",
)
@option(
    "--cgroups",
    type=DIRECTORY,
    default=Path("/host/sys/fs/cgroup"),
    help="Where the node's /sys/fs/cgroup is seen: whether processes are left of a pod that was deleted by force.",
)
@option(
    "--application-xids",
    metavar="XID,...",
    type=Several(_xid, "XID numbers"),
    default="13,31,43,45,68,109",
    help="XIDs that are an application's fault: logged, and the GPU stays healthy. none: every XID is the GPU's.",
)
@click.pass_context
def plugin(context: click.Context, /, **options: Any) -> None:
    """Advertise this node's GPUs to the kubelet as vGPUs, and allocate them."""
    if context.invoked_subcommand is not None:
        if options:
            end(f"put the options after the command: gpu-share plugin {context.invoked_subcommand} ...", UNUSABLE)
        return
    from plugin.process import run
    from plugin.settings import Settings

    pod_uid, telemetry = options["pod_uid"], _telemetry(options)
    sys.exit(run(Settings(**options, pod_uid=pod_uid), telemetry))


@plugin.command(short_help="Show the health of this node's GPUs.")
@state_dir_option
@option(
    "--output",
    "-o",
    of="status",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Output format.",
)
def status(*, state_dir: Path, output: Literal["text", "json"]) -> None:
    """
    Show the health of this node's GPUs: since when, the cause of each fault, and its recovery condition.

    Exits with 1 if a GPU is unhealthy, none is shared yet, the kubelet does not know what the plugin advertises, or the
    ResourceSlices of DRA are not published, with 2 if no plugin runs here or none says how they are.
    """
    from plugin.health.status import show

    sys.exit(show(state_dir, output=output))


@plugin.command(short_help="End a fault of a GPU that nothing else ends.")
@click.argument("gpu")
@state_dir_option
@click.option(
    "--reason", metavar="TEXT", required=True, help="Why the GPU is good again: for the log, and for plugin status."
)
def recover(*, gpu: str, state_dir: Path, reason: str) -> None:
    """
    Have the plugin take GPU for healthy again, after a fault that ends by a reset alone.

    GPU is its number, its UUID, or the beginning of that. What the plugin sees now cannot be ended so: that a GPU is
    lost or in MIG mode, that it has no MPS daemon, or that the driver asks for something.

    Exits with 1 if the plugin refuses, with 2 if no plugin runs here or there is no such GPU.
    """
    from plugin.health.recover import recover as ask

    sys.exit(ask(state_dir, gpu, reason=reason))


@click.command(short_help="Supervise an MPS daemon for each shared GPU.")
@node_options
@option("--multi-user", is_flag=True, help="One MPS server for the users of all tenants; see docs/security.md.")
@option(
    "--log-dir",
    type=DIRECTORY,
    default=Path("/var/log/gpu-share"),
    help="Directory for the logs of NVIDIA's MPS programs, at most 32 MiB for each GPU.",
)
@option(
    "--container-logs",
    type=DIRECTORY,
    default=Path("/var/log/containers"),
    help="The kubelet's links to the logs of containers, whose names say which container has which ID.",
)
@option(
    "--control", metavar="PROGRAM", default="nvidia-cuda-mps-control", help="NVIDIA's MPS control, by name or path."
)
def mps(**options: Any) -> None:
    """Supervise an MPS control daemon for each GPU of this node that is shared by MPS."""
    from plugin.mps.settings import MpsSettings
    from plugin.mps_process import run

    telemetry = _telemetry(options)
    sys.exit(run(MpsSettings(**options), telemetry))
