"""`gpu-share webhook` and `gpu-share preview`: serve decisions to a cluster, or show them without one."""

import sys
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from click.core import ParameterSource

from program.front import UNUSABLE, end, failed, standard_input
from program.options import FILE, FILE_OR_INPUT, metrics_option, option, policies_option

if TYPE_CHECKING:
    from webhook.preview.command import Rules
    from webhook.preview.translated import Origin


@click.command()
@policies_option
@option("--cert", required=True, type=FILE, help="Serving certificate and its chain, PEM.")
@option("--key", required=True, type=FILE, help="Private key of the certificate, PEM.")
@option("--bind", default="[::]:8443", metavar="HOST:PORT", help="Address and port.")
@option("--workers", default=1, type=click.IntRange(1, 16), help="Number of worker processes.")
@metrics_option
def webhook(
    *, policies: Path, cert: Path, key: Path, bind: str, workers: int, metrics_bind: tuple[str, int] | None
) -> None:
    """Serve the mutating admission webhook over TLS."""
    from webhook.environment import prepare_for_gunicorn
    from webhook.settings import Settings, StartError

    try:
        prepare_for_gunicorn()
    except StartError as error:
        sys.exit(failed("webhook", error, error.exit_code))
    from webhook.server import run

    run(Settings(policies=policies, cert=cert, key=key, bind=bind, workers=workers, metrics_bind=metrics_bind))


@click.command(short_help="Show what the webhook would do with pods in files.")
@click.argument("files", nargs=-1, metavar="[FILE...|-]", type=FILE_OR_INPUT)
@option("--namespace", "-n", of="preview", metavar="NAME", help="Namespace of the pods, instead of what the files say.")
@policies_option
@option(
    "--output",
    "-o",
    of="preview",
    type=click.Choice(["explain", "diff", "yaml", "patch", "translated"]),
    default="explain",
    help="The decision in sentences, a diff of the pod, the documents as admitted, the JSON Patch of one pod, or, with "
    "--from, the documents as translated.",
)
@option(
    "--from",
    "system",
    of="preview",
    type=click.Choice(["hami", "aliyun"]),
    help="Translate pods of HAMi (nvidia.com/gpumem) or of Alibaba's gpushare (aliyun.com/gpu-mem) first.",
)
@option(
    "--gpu-memory",
    of="preview",
    metavar="81559Mi",
    default="",
    help="Memory of the GPUs on which the pods ran, with --from: as nvidia-smi says.",
)
@option(
    "--memory-unit",
    of="preview",
    type=click.Choice(["GiB", "MiB"]),
    default="GiB",
    help="Unit of aliyun.com/gpu-mem, with --from aliyun: --memory-unit of Alibaba's device plugin.",
)
@option(
    "--pod-path",
    "pod_paths",
    of="preview",
    multiple=True,
    metavar="PATH",
    help="Where other custom resources have a pod template or a pod's fields, such as spec.tasks.*.template; * is each "
    "item. Can be repeated.",
)
@option(
    "--pod-security",
    "level",
    of="preview",
    type=click.Choice(["privileged", "baseline", "restricted"]),
    help="What Pod Security enforces in the namespaces, instead of what a Namespace in the files or the cluster says.",
)
@option("--cluster", of="preview", is_flag=True, help="Take the policies of the cluster that kubectl reaches.")
@option("--context", of="preview", default="", metavar="NAME", help="Context of the kubeconfig, with --cluster.")
@option(
    "--kubeconfig",
    of="preview",
    default="",
    metavar="FILE",
    help="Kubeconfig, with --cluster; else as kubectl finds it.",
)
def preview(
    *,
    files: tuple[str, ...],
    namespace: str | None,
    policies: Path,
    output: Literal["explain", "diff", "yaml", "patch", "translated"],
    system: Literal["hami", "aliyun"] | None,
    gpu_memory: str,
    memory_unit: Literal["GiB", "MiB"],
    pod_paths: tuple[str, ...],
    level: Literal["privileged", "baseline", "restricted"] | None,
    cluster: bool,
    context: str,
    kubeconfig: str,
) -> None:
    """
    Say what the webhook would do with pods and pod templates in YAML or JSON files.

    It needs no cluster, and takes the policies of a directory, or with --cluster those of a cluster. With --from it
    takes pods of another system, and says for each of their fields what it became.

    Reads standard input if FILE is - or missing. Exits with 1 if a pod is denied, with 2 if an input cannot be read or
    an object with containers is of a kind that is not known (name the place of its pods by --pod-path), or a pod cannot
    be translated, or written where its kind takes no annotations.
    """
    from policies.commands import check_namespace, loaded
    from webhook.preview.command import Rules, run
    from webhook.preview.places import PATH

    if files.count("-") > 1:
        raise click.UsageError("standard input can be read once: name - once.")
    given = _given()
    _check_cluster(given, cluster=cluster)
    source = _origin(system, gpu_memory if system or "gpu_memory" in given else "", memory_unit, output)
    if namespace is not None:
        check_namespace(namespace, f"--namespace {namespace}")
    for path in pod_paths:
        if not PATH.fullmatch(path):
            end(f"--pod-path {path!a}: expected names with dots between them, such as spec.tasks.*.template", UNUSABLE)
    inputs = [(name if name != "-" else "standard input", _read_text(name)) for name in files or ("-",)]
    if cluster:
        rules = _of_cluster(context, kubeconfig, level or "")
    else:
        rules = Rules(_shown(policies), loaded(policies), level=level or "")
    sys.exit(run(inputs, rules, namespace=namespace, output=output, pod_paths=pod_paths, source=source))


def _origin(
    system: Literal["hami", "aliyun"] | None, memory: str, unit: Literal["GiB", "MiB"], output: str
) -> "Origin | None":
    """Say where the pods come from; None without --from."""
    from webhook.preview.translated import gpu_memory, origin

    if system is None:
        if output == "translated" or memory:
            what = "-o translated" if output == "translated" else "--gpu-memory"
            raise click.UsageError(f"{what} is of pods of another system: add --from.")
        return None
    if output == "patch":
        raise click.UsageError("-o patch is of a pod as the webhook gets it: translate it with -o translated first.")
    try:
        return origin(system, gpu_memory(memory) if memory else None, unit)
    except ValueError:
        end(f"--gpu-memory {memory!a}: expected the memory of a GPU with its unit, such as 81559Mi or 80Gi", UNUSABLE)


def _of_cluster(context: str, kubeconfig: str, level: str) -> "Rules":
    """Read its policies with their source, and the namespace of pods that name none."""
    from webhook.preview.cluster import Cluster, ClusterError
    from webhook.preview.command import Rules

    try:
        cluster = Cluster(context, kubeconfig)
        found = cluster.policies()
        return Rules(found.source, found.policies, cluster.namespace(), level, cluster.said_by, found.notes)
    except ClusterError as error:
        end(f"--cluster: {error}", UNUSABLE)


def _shown(directory: Path) -> str:
    """Write a path as short as it is from here."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # which was removed meanwhile
        return str(directory)
    return str(directory.relative_to(here) if directory.is_relative_to(here) else directory)


def _given() -> set[str]:
    """Name the options on the command line; others may be in the environment."""
    context = click.get_current_context()
    return {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}


def _check_cluster(given: Container[str], *, cluster: bool) -> None:
    """Reject options that contradict each other."""
    if cluster and "policies" in given:
        raise click.UsageError("--cluster and --policies exclude each other: keep one of them.")
    for name in ("context", "kubeconfig"):
        if not cluster and name in given:
            raise click.UsageError(f"--{name} says where the cluster is: add --cluster.")


def _read_text(name: str) -> str:
    """Read a file, or standard input for -."""
    from webhook.preview.objects import LARGEST_BYTES

    if name == "-" and standard_input().isatty():
        end("no input: name a file, or send one to standard input", UNUSABLE)
    shown = "standard input" if name == "-" else name
    try:
        with standard_input() if name == "-" else Path(name).open("rb") as file:  # which may be a pipe of the shell
            content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            end(f"{shown}: larger than {LARGEST_BYTES // 1024} KiB: split it, for instance by namespace", UNUSABLE)
        return content.decode()
    except OSError as error:
        end(f"{shown}: cannot be read ({error.strerror}): name a file with pods", UNUSABLE)
    except UnicodeDecodeError:
        end(f"{shown}: is not UTF-8: save it as UTF-8", UNUSABLE)
