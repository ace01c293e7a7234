"""
The policies of a cluster: the ConfigMaps that its webhook reads, as the user's own kubectl gives them.

kubectl knows the kubeconfig, its contexts and the plugins that sign users in, so nothing of that is needed here.
"""

import json
import re
import subprocess
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from policies.contract import NAMESPACE, POLICIES_VOLUME, WEBHOOK_SERVICE
from policies.denial import shorten
from policies.errors import GpuShareError, PolicyError
from policies.policy_set import PolicySet
from policies.policy_volume import SHIPPED, ConfigMapSource, ConfigMapVolume, VolumeError, files_of, named, sources_of
from policies.reading.directory import write_volume
from policies.reading.layers import is_namespace
from policies.reading.store import PolicyStore
from webhook.preview.pod_security import Said, said_by_namespaces

_DEPLOYMENT = f"Deployment {NAMESPACE}/{WEBHOOK_SERVICE}"
_UNLISTED = (
    f"{_DEPLOYMENT} may not be read, which names further ConfigMaps: the policies are judged as if it named none"
)
_IN_OURS = ("--namespace", NAMESPACE, "--output", "json")
_SECONDS = 30
_NAMESPACE = re.compile(r"[a-z0-9-]{1,63}")
_LOG_LINE = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.")  # https://pkg.go.dev/k8s.io/klog/v2


class ClusterError(GpuShareError):
    """Policies that cannot be had from the cluster; the message says why, and what to do."""


class _ConfigMap(msgspec.Struct, frozen=True, rename="camel"):
    """Files as a ConfigMap has them: those that are not UTF-8 apart from the others."""

    kind: str = ""
    data: dict[str, str] | None = None
    binary_data: dict[str, bytes] | None = None


class Found(msgspec.Struct, frozen=True):
    """The policies of a cluster, how to call their source, and what is not as it looks, a sentence each."""

    source: str
    policies: PolicySet
    notes: tuple[str, ...] = ()


class Cluster(msgspec.Struct, frozen=True):
    """Where kubectl finds the cluster; empty for what it takes by itself."""

    context: str = ""
    kubeconfig: str = ""

    def policies(self) -> Found:
        """
        Read the policies.

        Raises:
            ClusterError: If kubectl cannot read them, or they cannot be used.
        """
        data: dict[str, bytes] = {}
        places: dict[str, str] = {}
        listed = self._sources()
        sources = SHIPPED if listed is None else listed
        for one in sources:  # as in the webhook's volume: of two files of one name the last counts
            found = self._files(one)
            data |= found
            places |= {file: f"{named([one])}/{file}" for file in found}
        context = self.context or self._config("current-context") or "(none)"
        source = f"{named(sources)} of the cluster, context {shorten(context, 100)}"
        notes = [] if listed is not None else [_UNLISTED]
        notes += [] if data else [f"no policy file is in {named(sources)}: the built-in defaults decide"]
        try:
            policies, troubles = _read(data, places, named(sources))
        except OSError as error:
            reason = error.strerror or "no temporary directory can be written to"
            raise ClusterError(f"policies are read from files: {reason}: name a directory by TMPDIR") from None
        return Found(source, policies, (*notes, *troubles))

    def namespace(self) -> str:
        """Say in which namespace kubectl makes a pod that names none."""
        found = self._config("view", "--minify", "--output=jsonpath={..namespace}")
        return found if _NAMESPACE.fullmatch(found) else "default"

    def said_by(self, namespaces: Collection[str]) -> dict[str, Said]:
        """Read what each namespace says of its pods; those that cannot be read are left out."""
        names = sorted(filter(is_namespace, namespaces))  # as files say them: others could be options of kubectl
        if not names:
            return {}
        try:
            ran = self._ran("get", "namespaces", *names, "--output", "json", "--ignore-not-found")
            return said_by_namespaces([json.loads(ran.stdout)])  # which has those that may be read, if others may not
        except (ClusterError, ValueError):
            return {}

    def _sources(self) -> tuple[ConfigMapSource, ...] | None:
        """Name the ConfigMaps in the webhook's volume: as shipped without a Deployment, None if it may not be read."""
        ran = self._ran("get", "deployment", WEBHOOK_SERVICE, *_IN_OURS, "--ignore-not-found")
        if ran.returncode and "(Forbidden)" in ran.stderr:
            return None
        if ran.returncode == 0 and not ran.stdout.strip():
            return SHIPPED
        found = _answer(ran, _DEPLOYMENT)
        try:
            volumes = msgspec.convert(found["spec"]["template"]["spec"]["volumes"], tuple[ConfigMapVolume, ...])
            sources = sources_of(volumes)
        except (KeyError, TypeError, msgspec.ValidationError):
            sources = None
        if sources is None:
            raise ClusterError(
                f"{_DEPLOYMENT} has no volume {POLICIES_VOLUME} that is made of ConfigMaps alone: compare it with what "
                "the manifests have"
            )
        return sources

    def _files(self, source: ConfigMapSource) -> dict[str, bytes]:
        """Read what a ConfigMap puts in the volume; nothing of one that need not be there, and is not."""
        name = named([source])
        ran = self._ran("get", "configmap", source.name, *_IN_OURS, *["--ignore-not-found"] * source.optional)
        if source.optional and ran.returncode == 0 and not ran.stdout.strip():
            return {}
        try:
            return files_of(source, _data(_answer(ran, name), name))
        except VolumeError as error:
            raise ClusterError(f"{error}: compare it with what {_DEPLOYMENT} has") from None

    def _config(self, *arguments: str) -> str:
        """Ask kubectl for something of the kubeconfig; empty if it does not say."""
        ran = self._ran("config", *arguments)
        return "" if ran.returncode else ran.stdout.strip()

    def _ran(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        where = [f"--context={self.context}"] if self.context else []
        where += [f"--kubeconfig={self.kubeconfig}"] if self.kubeconfig else []
        command = ["kubectl", *where, "--request-timeout=10s", *arguments]
        try:
            return subprocess.run(  # noqa: S603
                command, capture_output=True, encoding="utf-8", errors="replace", check=False, timeout=_SECONDS
            )
        except FileNotFoundError:
            raise ClusterError("kubectl was not found: install it, or name a directory by --policies") from None
        except (OSError, subprocess.TimeoutExpired) as error:
            why = (
                f"gave no answer in {_SECONDS} seconds" if isinstance(error, subprocess.TimeoutExpired) else str(error)
            )
            raise ClusterError(f"kubectl {why}: check --context and --kubeconfig") from None


def _answer(ran: subprocess.CompletedProcess[str], named: str) -> Any:
    if ran.returncode:
        said = shorten(" ".join(_said(ran.stderr).split()) or f"exit code {ran.returncode}", 300)
        raise ClusterError(
            f"kubectl could not read {named} ({said}): check --context, --kubeconfig and your rights to get configmaps "
            f"and deployments in namespace {NAMESPACE}"
        )
    try:
        return json.loads(ran.stdout)
    except ValueError:
        raise ClusterError("kubectl did not answer in JSON: check that `kubectl version` works") from None


def _data(found: Any, name: str) -> dict[str, bytes]:
    try:
        held = msgspec.convert(found, _ConfigMap)
    except msgspec.ValidationError:
        held = _ConfigMap()
    files = {key: text.encode() for key, text in (held.data or {}).items()} | (held.binary_data or {})
    if not files and held.data is None and held.kind != "ConfigMap":  # which is without data as long as it is empty
        raise ClusterError(f"{name} holds no policy files: write them, as `kubectl apply -k manifests` does")
    return files


def _said(stderr: str) -> str:
    """Give what kubectl says to users, without the lines of its log if there is anything else."""
    lines = stderr.splitlines()
    return "\n".join(line for line in lines if not _LOG_LINE.match(line)) or stderr


def _read(files: Mapping[str, bytes], places: Mapping[str, str], source: str) -> tuple[PolicySet, list[str]]:
    """
    Read policy files as a webhook does, and what is wrong with those that concern one namespace, a sentence each.

    *places* are where sentences say that each file is, in *source*.
    """
    with tempfile.TemporaryDirectory() as directory:
        longest_first = sorted(places, key=len, reverse=True)

        def placed(problem: object) -> str:
            told = str(problem)
            for name in longest_first:  # one can begin like another
                told = told.replace(f"{directory}/{name}", places[name])
            return told.replace(directory, source)

        write_volume(Path(directory), files)
        try:
            store = PolicyStore(Path(directory))
        except PolicyError as error:
            raise ClusterError(placed(error)) from None
        return store.current, [placed(one) for one in store.troubles]
