"""`gpu-share policy …`: check and show policy files; and how every command reads them."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn

import click

from policies.policy_set import PolicySet
from program.front import FAILED, UNUSABLE, end, standard_input
from program.options import DIRECTORY, FILE, FILE_OR_INPUT, SHIPPED_POLICIES, option, policies_option

if TYPE_CHECKING:
    from policies.errors import PolicyError
    from policies.migration.imported import Imported


@click.group()
def policy() -> None:
    """Check and show policy files."""


@policy.command(short_help="Validate a directory of policy files.")
@click.argument("directory", type=DIRECTORY, default=SHIPPED_POLICIES, envvar="GPU_SHARE_POLICIES")
def check(*, directory: Path) -> None:
    """
    Validate DIRECTORY, a directory of policy files; report every problem with file, line and field.

    What is valid and still looks like an oversight is a warning. Exits with 1 if there is a problem.

    DIRECTORY can be given as GPU_SHARE_POLICIES too; without either, the shipped policies are checked.
    """
    from policies.errors import PolicyError
    from policies.reading.directory import kustomization, policy_files, unread_files
    from policies.reading.oversights import oversights
    from policies.reading.store import load
    from policies.reading.unread import left_unread

    try:
        directory.stat()
        made = load(directory)
        files = policy_files(directory)
        unread = left_unread(files, unread_files(directory))
    except OSError as error:
        end(f"{directory}: cannot be read ({error.strerror}): name the directory that holds the policy files", UNUSABLE)
    except PolicyError as error:
        _end_with(error, FAILED)
    for oversight in (*oversights(made, files, kustomization(directory)), *unread):
        found = oversight.below(str(directory))
        click.echo(f"{found.place}: warning: {found.told}", err=True)
    count = len(made.namespaces)
    click.echo(
        f"{directory}: valid, {count} {'namespace overrides' if count == 1 else 'namespaces override'} the default"
    )


@policy.command(short_help="Print the DeviceClasses for allocation by DRA.")
@policies_option
def classes(*, policies: Path) -> None:
    """
    Print the DeviceClasses for allocation by DRA, by the vgpusPerGpu of _cluster.yaml.

    Of MIG instances there are those that the devices of some policy name, of GPUs with a device in nodes all of them. A
    broken policy is a warning on standard error, and has none.
    """
    import yaml

    from policies.device_classes import device_classes

    try:
        read = loaded(policies)
        made = device_classes(read.cluster, read.instances)
    except ValueError as error:
        end(str(error), FAILED)
    click.echo(yaml.safe_dump_all(made, sort_keys=False), nl=False)


@policy.command()
@click.option("--cluster", is_flag=True, help="The schema of _cluster.yaml instead of a namespace's policy.")
def schema(*, cluster: bool) -> None:
    """Print the JSON Schema of a policy file, for editors."""
    from policies.reading.schema import cluster_schema, policy_schema

    _print_json(cluster_schema() if cluster else policy_schema())


@policy.command(short_help="Print the policy in force for a namespace.")
@click.argument("namespace")
@policies_option
def show(*, namespace: str, policies: Path) -> None:
    """Print the policy in force for NAMESPACE, and the file and line of each field."""
    from policies.reading.reference import show as lines

    check_namespace(namespace, namespace)
    made, _ = _read(policies)
    policy = made.of(namespace)
    if policy.broken is not None:
        problem = policy.broken.below(str(policies))
        end(f"{problem}: the policy of the namespace {namespace} is broken: correct the file", UNUSABLE)
    if exemption := made.exemption(namespace):
        click.echo(f"# {exemption}: its pods are admitted unchanged")
    for line in lines(namespace, policy):
        click.echo(line)


@policy.command("import", short_help="Translate the configuration of NVIDIA's device plugin.")
@click.argument("file", metavar="FILE|-", type=FILE_OR_INPUT)
@option("--nodes", of="import", type=FILE, help="The configuration of each node, as two columns of kubectl get nodes.")
@option("--default", of="import", metavar="NAME", help="The configuration of nodes without the label.")
@click.option("--no-default", is_flag=True, help="Nodes without the label have no configuration.")
@option("--into", of="import", type=DIRECTORY, help="Write the policy files into this directory as well.")
@option(
    "--output",
    "-o",
    of="import",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Output format.",
)
def import_(
    *,
    file: str,
    nodes: Path | None,
    default: str | None,
    no_default: bool,
    into: Path | None,
    output: Literal["text", "json"],
) -> None:
    """
    Print policy files that do what FILE, a configuration of NVIDIA's device plugin, does: version v1, or a ConfigMap.

    A ConfigMap, or the values of a Helm chart, hold several configurations under names, of which nodes choose one by
    the label nvidia.com/device-plugin.config. Says for each key what became of it; docs/migrate.md says what comes
    next.

    Reads standard input if FILE is -. Exits with 1 if something is left to decide, with 2 if a file cannot be read or
    NVIDIA's plugin would not start with it.
    """
    if no_default and default is not None:
        raise click.UsageError("--default and --no-default exclude each other: keep one of them.")
    name = file if file != "-" else "standard input"
    made = _imported(file, name, nodes, default, no_default=no_default)
    _print(made, name, output)
    if into is not None:
        _write(made, into)
    sys.exit(FAILED if made.questions else 0)


def _imported(file: str, name: str, nodes: Path | None, default: str | None, *, no_default: bool) -> "Imported":
    """Translate the *file* that messages call *name*; exits with 2 if it cannot be."""
    from policies.errors import PolicyError
    from policies.migration.nvidia import NO_DEFAULT, import_nvidia

    try:
        return import_nvidia(
            _text_of(file, name),
            name,
            nodes=(str(nodes), _text_of(str(nodes), str(nodes), "a list of nodes")) if nodes is not None else None,
            default=NO_DEFAULT if no_default else default,
        )
    except PolicyError as error:
        _end_with(error, UNUSABLE)


def _print(made: "Imported", name: str, output: Literal["text", "json"]) -> None:
    from policies.migration.report import as_json, as_text

    if output == "json":
        _print_json(as_json(made))
        return
    for line in as_text(made, name):
        click.echo(line)


def _write(made: "Imported", directory: Path) -> None:
    from policies.migration.report import files

    written = files(made)
    try:
        for name in written:
            if (directory / name).is_symlink() or (directory / name).exists():
                end(f"{directory / name}: exists already: name an empty directory with --into", UNUSABLE)
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in written.items():
            with (directory / name).open("x", encoding="utf-8") as file:  # through no link that has come meanwhile
                file.write(text)
    except OSError as error:
        end(f"{directory}: cannot be written ({error.strerror}): name another directory with --into", UNUSABLE)


def _text_of(path: str, name: str, what: str = "a configuration of NVIDIA's device plugin") -> str:
    """Read a file, or standard input for -, up to a little more than may be in it; *what* says what it should be."""
    from policies.reading.document import LARGEST_BYTES

    try:
        if path == "-":
            content = standard_input().read(LARGEST_BYTES + 1)
        else:
            with Path(path).open("rb") as opened:
                content = opened.read(LARGEST_BYTES + 1)
        return content.decode()
    except OSError as error:
        end(f"{name}: cannot be read ({error.strerror}): name {what}", UNUSABLE)
    except UnicodeDecodeError:
        end(f"{name}: is not UTF-8: save it as UTF-8", UNUSABLE)


def _end_with(error: "PolicyError", code: int) -> NoReturn:
    """End with one line for each problem."""
    for problem in error.problems:
        click.echo(str(problem), err=True)
    sys.exit(code)


def _print_json(document: object) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


def loaded(directory: Path) -> PolicySet:
    """
    Read the policies in *directory*; what is broken and concerns one namespace is a warning on stderr.

    Exits with 2 and one line that says why, if they cannot be used.
    """
    made, warnings = _read(directory)
    for warning in warnings:
        click.echo(f"gpu-share: warning: {warning}", err=True)
    return made


def _read(directory: Path) -> tuple[PolicySet, list[str]]:
    from policies.errors import PolicyError
    from policies.reading.store import PolicyStore

    try:
        store = PolicyStore(directory)
    except PolicyError as error:
        end(str(error), UNUSABLE)
    return store.current, [str(trouble) for trouble in store.troubles]


def check_namespace(name: str, given: str) -> None:
    """Exit with 2 unless *name*, which the user wrote as *given*, can be a namespace's."""
    from policies.reading.layers import is_namespace

    if not is_namespace(name):
        end(f"{given!a}: invalid namespace: expected lower-case letters, digits and dashes", UNUSABLE)
