"""The front door: the `gpu-share` command. Each subcommand imports its room only when it is called."""

import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

import click

from policies import contract

F = TypeVar("F", bound=Callable[..., Any])

REFUSED = 1  # exit code: refused, or failed
UNUSABLE = 2  # exit code: bad usage, or unreadable input

_SHIPPED_POLICIES = Path(__file__).parent / "policies" / "files"
_EXAMPLES = Path(__file__).parent / "policies" / "examples"
_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)
_STATE = Path("/run/gpu-share")


def option(name: str, *more: str, **settings: Any) -> Callable[[F], F]:
    """Declare an option that can also be set by the environment: `--bind` by GPU_SHARE_BIND."""
    variable = "GPU_SHARE_" + name.removeprefix("--").replace("-", "_").upper()
    return click.option(name, *more, envvar=variable, show_envvar=True, show_default=True, **settings)


policies_option = option("--policies", type=_FOLDER, default=_SHIPPED_POLICIES, help="Folder of policy files.")


class FrontDoor(click.Group):
    """Says in one line what was wrong with a call."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - the signature is click's
        **extra: Any,
    ) -> Any:
        """Run the command, and exit with its code."""
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.ClickException as error:
            if not standalone_mode:
                raise
            if isinstance(error, click.exceptions.NoArgsIsHelpError):
                error.show()
                sys.exit(error.exit_code)
            _end(" ".join(error.format_message().split()), error.exit_code)
        except click.Abort:
            _end("interrupted", REFUSED)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


@click.group(cls=FrontDoor, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="gpu-share")
def main() -> None:
    """Give each pod its share of a GPU: annotate it with gpu-share: "0.2" and change nothing else."""


@main.command()
@click.argument("files", nargs=-1, metavar="[FILE...|-]")
@option("--namespace", "-n", metavar="NAME", help="Namespace of the pods, instead of what the files say.")
@policies_option
@option(
    "--output",
    "-o",
    type=click.Choice(["explain", "diff", "yaml", "patch"]),
    default="explain",
    help="The decision in sentences, a diff of the pod, the documents as admitted, or the JSON Patch of one pod.",
)
def preview(
    *,
    files: tuple[str, ...],
    namespace: str | None,
    policies: Path,
    output: Literal["explain", "diff", "yaml", "patch"],
) -> None:
    """
    Say what the webhook would do with pods and pod templates in YAML or JSON files, with no cluster.

    Reads standard input if FILE is - or missing. Exits with 1 if a pod is refused, with 2 if an input cannot be read.
    """
    from policies.reading.layers import is_namespace
    from webhook.preview.command import run

    if namespace is not None and not is_namespace(namespace):
        _end(
            f"--namespace {namespace!a}: is no namespace: its name has lower-case letters, digits and dashes", UNUSABLE
        )
    inputs = [(name if name != "-" else "standard input", _read_text(name)) for name in files or ("-",)]
    sys.exit(run(inputs, _load(policies), namespace=namespace, output=output))


@main.group()
def policy() -> None:
    """Check and show policy files."""


@policy.command()
@click.argument("folder", type=_FOLDER, default=_SHIPPED_POLICIES, envvar="GPU_SHARE_POLICIES")
def check(*, folder: Path) -> None:
    """
    Validate FOLDER, a folder of policy files; report every problem with file, line and field.

    FOLDER can be given as GPU_SHARE_POLICIES too; without either, the shipped policies are checked.
    """
    from policies.errors import PolicyError
    from policies.reading.store import load

    if not folder.is_dir():
        _end(f"{folder}: is no folder: name the folder that holds the policy files", UNUSABLE)
    try:
        loaded = load(folder)
    except PolicyError as error:
        for problem in error.problems:
            click.echo(str(problem), err=True)
        sys.exit(REFUSED)
    click.echo(f"{folder}: good, with policies of their own for {len(loaded.namespaces)} namespaces")


@policy.command()
@option("--cluster", is_flag=True, help="The schema of _cluster.yaml instead of a namespace's policy.")
def schema(*, cluster: bool) -> None:
    """Print the JSON Schema of a policy file, for editors."""
    import msgspec

    from policies.reading.schema import cluster_schema, policy_schema

    made = cluster_schema() if cluster else policy_schema()
    click.echo(msgspec.json.format(msgspec.json.encode(made), indent=2).decode())


@policy.command()
@click.argument("namespace")
@policies_option
def show(*, namespace: str, policies: Path) -> None:
    """Print the policy in force for NAMESPACE, and the file and line of each field."""
    from policies.reading.layers import is_namespace
    from policies.reading.reference import show as lines

    if not is_namespace(namespace):
        _end(f"{namespace!a}: is no namespace: its name has lower-case letters, digits and dashes", UNUSABLE)
    loaded = _load(policies)
    if loaded.is_exempt(namespace):
        click.echo(f"# {namespace} is exempt (_cluster.yaml: exemptNamespaces): its pods are never looked at")
    for line in lines(namespace, loaded.of(namespace)):
        click.echo(line)


@main.command()
@policies_option
@option("--cert", required=True, type=_FILE, help="Serving certificate and its chain, PEM.")
@option("--key", required=True, type=_FILE, help="Private key of the certificate, PEM.")
@option("--bind", default="0.0.0.0:8443", metavar="HOST:PORT", help="Address and port.")
@option("--workers", default=1, type=click.IntRange(1, 16), help="Number of worker processes.")
def webhook(*, policies: Path, cert: Path, key: Path, bind: str, workers: int) -> None:
    """Serve the mutating admission webhook over TLS."""
    from webhook.server import run
    from webhook.settings import Settings

    run(Settings(policies=policies, cert=cert, key=key, bind=bind, workers=workers))


def node_options(command: F) -> F:
    """Declare the options that all parts on a node have."""
    made = (
        policies_option,
        option(
            "--strategy",
            type=click.Choice(["mps", "time-slicing", "whole"]),
            default="mps",
            help="What this node's GPUs are offered as, where nodes of _cluster.yaml says nothing else.",
        ),
        option(
            "--node-name", metavar="NAME", default=platform.node, help="This node, as nodes of _cluster.yaml names it."
        ),
        option("--state-dir", type=_FOLDER, default=_STATE, help="Folder in which a node's parts tell how they are."),
        option(
            "--pod-resources",
            type=_FILE,
            default=Path("/var/lib/kubelet/pod-resources/kubelet.sock"),
            help="The kubelet's socket that says which pod holds which vGPU.",
        ),
        option("--wait-for-gpus", is_flag=True, help="Wait for NVML and a GPU instead of ending with an error."),
    )
    for declare in reversed(made):
        command = declare(command)
    return command


class Several(click.ParamType[frozenset[Any]]):
    """A list with commas, each of whose items *read* accepts; `none` is the empty list."""

    name = "list"

    def __init__(self, read: Callable[[str], Any], expected: str) -> None:
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


def _xid(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text[:20])


@main.group(invoke_without_command=True)
@node_options
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
@option(
    "--device-handover",
    metavar="envvar,cdi,devices",
    type=Several({"envvar": "envvar", "cdi": "cdi", "devices": "devices"}.__getitem__, "some of envvar, cdi, devices"),
    default="envvar",
    help="How a container gets its GPU: by variable, by a CDI device, by device nodes, or several of these.",
)
@option("--cdi-dir", type=_FOLDER, default=Path("/var/run/cdi"), help="Folder of CDI specifications.")
@option(
    "--application-xids",
    metavar="XID,...",
    type=Several(_xid, "XID numbers"),
    default="13,31,43,45,68,109",
    help="XIDs that are a program's fault: reported, and the GPU stays healthy. none: every XID is the GPU's.",
)
@click.pass_context
def plugin(context: click.Context, /, **options: Any) -> None:
    """Offer this node's GPUs to the kubelet as vGPUs."""
    if context.invoked_subcommand is not None:
        return
    from plugin.process import run
    from plugin.settings import Settings

    if not options["device_handover"]:
        _end("--device-handover: expected some of envvar, cdi, devices", UNUSABLE)
    sys.exit(run(Settings(**options)))


@plugin.command()
@option("--state-dir", type=_FOLDER, default=_STATE, help="Folder that the plugin was started with.")
@option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="For people, or for programs.")
def status(*, state_dir: Path, output: Literal["text", "json"]) -> None:
    """
    Say how this node's GPUs are: state, since when, why, and what would bring each back.

    Exits with 1 if a GPU is unhealthy, with 2 if no plugin runs here.
    """
    from plugin.health.status import show

    sys.exit(show(state_dir, output=output))


@main.command()
@node_options
@option("--multi-user", is_flag=True, help="One MPS server for the users of all tenants; see docs/security.md.")
@option(
    "--control", metavar="PROGRAM", default="nvidia-cuda-mps-control", help="NVIDIA's MPS control, by name or path."
)
def mps(**options: Any) -> None:
    """Run and watch an MPS daemon for each GPU of this node that is shared by MPS."""
    from plugin.mps.settings import MpsSettings
    from plugin.mps_process import run

    sys.exit(run(MpsSettings(**options)))


@main.group()
def certs() -> None:
    """Issue the certificates that the webhook serves, and rotate them."""


@certs.command()
@option("--out", required=True, type=_FOLDER, help="Folder to write ca.crt, tls.crt and tls.key into.")
@option("--dns", multiple=True, default=["localhost"], help="Name the certificate is for; repeatable.")
def issue(*, out: Path, dns: tuple[str, ...]) -> None:
    """Write a certificate authority and a serving certificate signed by it."""
    from certs.issuer import IssueError, issue_to_directory

    try:
        issue_to_directory(out, dns_names=dns)
    except IssueError as error:
        _end(str(error), REFUSED)


@certs.command()
@option("--namespace", "-n", metavar="NAME", default=contract.NAMESPACE, help="Namespace of Service and Secrets.")
@option("--service", metavar="NAME", default=contract.WEBHOOK_SERVICE, help="Service that API servers call.")
@option(
    "--settle-minutes",
    type=click.IntRange(1, 24 * 60),
    default=10,
    help="Minutes until every API server has read a bundle and every kubelet projected a Secret.",
)
def ensure(*, namespace: str, service: str, settle_minutes: int) -> None:
    """
    Make one pass over the certificates in the cluster: write what is missing, due or broken, and exit.

    Exits with 1 if the API server refuses or cannot be reached, with 2 if no cluster is configured.
    """
    from certs.ensure import run

    sys.exit(run(namespace=namespace, service=service, settle_minutes=settle_minutes))


@main.command()
@policies_option
def demo(*, policies: Path) -> None:
    """Run the whole chain on this machine with example pods: no cluster, no GPU, nothing left running."""
    from rich.console import Console

    from plugin.simulated.demo import DemoError, Example, run
    from webhook.preview.command import examples

    made = [
        Example(title=one.title, namespace=one.namespace, pod=one.pod, why=one.why)
        for one in examples(_EXAMPLES, _load(policies))
    ]
    try:
        run(made, policies=policies, console=Console())
    except DemoError as error:
        _end(str(error), REFUSED)


def _load(policies: Path) -> Any:
    from policies.errors import PolicyError
    from policies.reading.store import load

    try:
        return load(policies)
    except PolicyError as error:
        _end(str(error), UNUSABLE)


def _read_text(name: str) -> str:
    """Read a file, or standard input for -."""
    if name == "-" and sys.stdin.isatty():
        _end("no input: name a file, or send one to standard input", UNUSABLE)
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return content.decode()
    except OSError as error:
        _end(f"{name}: cannot be read: {error.strerror}", UNUSABLE)
    except UnicodeDecodeError:
        _end(f"{name}: is not UTF-8: save it as UTF-8", UNUSABLE)


def _end(message: str, code: int) -> NoReturn:
    click.echo(f"gpu-share: {message}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
