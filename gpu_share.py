"""The front door: the `gpu-share` command. Each subcommand imports its room only when it is called."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_SHIPPED_POLICIES = Path(__file__).parent / "policies" / "files"
_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)


def option(name: str, *more: str, **settings: Any) -> Callable[[F], F]:
    """Declare an option that can also be set by the environment: `--bind` by GPU_SHARE_BIND."""
    variable = "GPU_SHARE_" + name.removeprefix("--").replace("-", "_").upper()
    return click.option(
        name, *more, envvar=variable, show_envvar=True, show_default=True, **settings
    )


policies_option = option(
    "--policies", type=_FOLDER, default=_SHIPPED_POLICIES, help="Folder of policy files."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="gpu-share")
def main() -> None:
    """Give each pod its share of a GPU: annotate it with gpu-share: "0.2" and change nothing else."""


@main.command()
@policies_option
@option("--cert", required=True, type=_FILE, help="Serving certificate and its chain, PEM.")
@option("--key", required=True, type=_FILE, help="Private key of the certificate, PEM.")
@option("--bind", default="0.0.0.0:8443", help="Address and port, HOST:PORT.")  # noqa: S104 - a pod's
@option("--workers", default=1, type=click.IntRange(1, 16), help="Worker processes.")
def webhook(*, policies: Path, cert: Path, key: Path, bind: str, workers: int) -> None:
    """Serve the mutating admission webhook over TLS."""
    from webhook.server import run
    from webhook.settings import Settings

    run(Settings(policies=policies, cert=cert, key=key, bind=bind, workers=workers))


@main.command()
@policies_option
@option("--simulate", metavar="2xH200|FILE", help="Offer GPUs that are not there, instead of NVML's.")
@option(
    "--kubelet-dir",
    type=_FOLDER,
    default=Path("/var/lib/kubelet/device-plugins"),
    help="Folder of the kubelet's socket and of ours.",
)
@option(
    "--allocation-policy",
    type=click.Choice(["pack", "spread"]),
    default="pack",
    help="Which GPU a share goes to: the fullest that fits, or the emptiest.",
)
@option("--wait-for-gpus", is_flag=True, help="Wait for NVML and a GPU instead of ending with an error.")
def plugin(
    *, policies: Path, simulate: str | None, kubelet_dir: Path, allocation_policy: str, wait_for_gpus: bool
) -> None:
    """Offer this node's GPUs to the kubelet as vGPUs."""
    from plugin.process import run
    from plugin.settings import Settings

    sys.exit(
        run(
            Settings(
                policies=policies,
                simulate=simulate,
                kubelet_dir=kubelet_dir,
                allocation_policy=allocation_policy,
                wait_for_gpus=wait_for_gpus,
            )
        )
    )


@main.group()
def certs() -> None:
    """Issue the certificates that the webhook serves."""


@certs.command()
@option("--out", required=True, type=_FOLDER, help="Folder to write ca.crt, tls.crt and tls.key into.")
@option("--dns", multiple=True, default=["localhost"], help="Name the certificate is for; repeatable.")
def issue(*, out: Path, dns: tuple[str, ...]) -> None:
    """Write a certificate authority and a serving certificate signed by it."""
    from certs.authority import issue_to_folder

    issue_to_folder(out, dns_names=dns)


if __name__ == "__main__":
    main()
