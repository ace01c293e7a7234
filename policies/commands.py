"""`gpu-share policy …`: check and show policy files; and how every command reads them."""

import sys
from pathlib import Path

import click

from policies.policy_set import PolicySet
from program.front import FAILED, UNUSABLE, end
from program.options import DIRECTORY, SHIPPED_POLICIES, policies_option


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
    from policies.reading.oversights import oversights
    from policies.reading.store import kustomization, load, policy_files

    if not directory.is_dir():
        end(f"{directory}: no such directory: name the one that holds the policy files", UNUSABLE)
    try:
        made = load(directory)
    except PolicyError as error:
        for problem in error.problems:
            click.echo(str(problem), err=True)
        sys.exit(FAILED)
    for oversight in oversights(made, policy_files(directory), kustomization(directory)):
        found = oversight.below(str(directory))
        click.echo(f"{found.place}: warning: {found.told}", err=True)
    count = len(made.namespaces)
    click.echo(
        f"{directory}: valid, {count} {'namespace overrides' if count == 1 else 'namespaces override'} the default"
    )


@policy.command()
@click.option("--cluster", is_flag=True, help="The schema of _cluster.yaml instead of a namespace's policy.")
def schema(*, cluster: bool) -> None:
    """Print the JSON Schema of a policy file, for editors."""
    import msgspec

    from policies.reading.schema import cluster_schema, policy_schema

    made = cluster_schema() if cluster else policy_schema()
    click.echo(msgspec.json.format(msgspec.json.encode(made), indent=2).decode())


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
    if made.is_exempt(namespace):
        click.echo(f"# {namespace} is exempt (_cluster.yaml: exemptNamespaces): its pods are admitted unchanged")
    for line in lines(namespace, policy):
        click.echo(line)


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
