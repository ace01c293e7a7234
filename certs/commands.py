"""`gpu-share certs …`: issue the webhook's certificates, and rotate them."""

import sys
from pathlib import Path

import click

from policies import contract
from program.front import FAILED, UNUSABLE, end
from program.options import DIRECTORY, metrics_option, option


@click.group(short_help="Issue and rotate the webhook's certificates.")
def certs() -> None:
    """Issue the certificates that the webhook serves, and rotate them."""


@certs.command(short_help="Write a CA and a serving certificate to files.")
@option("--out", required=True, type=DIRECTORY, help="Directory to write ca.crt, tls.crt and tls.key into.")
@option("--dns", multiple=True, default=["localhost"], help="Name the certificate is for; repeatable.")
def issue(*, out: Path, dns: tuple[str, ...]) -> None:
    """Write a CA certificate and a serving certificate signed by it."""
    from certs.issuer import IssueError, check_names, issue_to_directory

    try:
        check_names(dns)
    except IssueError as error:
        end(f"--dns: {error}", UNUSABLE)
    try:
        issue_to_directory(out, dns_names=dns)
    except IssueError as error:
        end(str(error), FAILED)


@certs.command(short_help="Write what is missing, due or broken, once.")
@option("--namespace", "-n", metavar="NAME", default=contract.NAMESPACE, help="Namespace of Service and Secrets.")
@option("--service", metavar="NAME", default=contract.WEBHOOK_SERVICE, help="Service that API servers call.")
@option(
    "--settle-minutes",
    type=click.IntRange(1, 24 * 60),
    default=10,
    help="Minutes until every API server has read a CA bundle and every kubelet projected a Secret.",
)
@option(
    "--every-minutes",
    type=click.IntRange(1, 24 * 60),
    help="Minutes between the end of a pass and the next one. Without it there is one pass.",
)
@metrics_option
def ensure(
    *,
    namespace: str,
    service: str,
    settle_minutes: int,
    every_minutes: int | None,
    metrics_bind: tuple[str, int] | None,
) -> None:
    """
    Make a pass over the certificates in the cluster: write what is missing, due or broken, and exit.

    With --every-minutes it makes a pass now and others later, until one fails or it is told to end, and answers
    scrapers meanwhile.

    Exits with 1 if the API server rejects a request or cannot be reached, with 2 if no cluster is configured.
    """
    from certs.ensure import run

    sys.exit(
        run(
            namespace=namespace,
            service=service,
            settle_minutes=settle_minutes,
            every_minutes=every_minutes,
            metrics_bind=metrics_bind,
        )
    )
