"""From a directory to the policies in force. The only file of the rules that touches the file system."""

import os
import re
from contextlib import suppress
from pathlib import Path

from policies.cluster import Cluster
from policies.errors import PolicyError, Problem
from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.detection import Catalogue
from policies.policy_set import PolicySet
from policies.reading.document import LARGEST_BYTES
from policies.reading.layers import CLUSTER_FILE, DEFAULT_FILE, Layer, effective, problem_of_name, read_layer

_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml")


def load(directory: Path) -> PolicySet:
    """
    Read a directory of policy files. A missing `_cluster.yaml` or `_default.yaml` means built-in defaults.

    Raises:
        PolicyError: If the directory cannot be read or any file in it has a problem; it carries all of them, and their
            files are paths that begin with *directory* as it was given.
    """
    problems: list[Problem] = []
    try:
        return _policies(_read_layers(directory, problems), problems)
    except PolicyError as error:
        raise PolicyError(tuple(one.below(str(directory)) for one in error.problems)) from None


def _policies(layers: dict[str, Layer], problems: list[Problem]) -> PolicySet:
    cluster_layer = layers.pop(CLUSTER_FILE, None)
    default_layer = layers.pop(DEFAULT_FILE, None)
    own = [default_layer] if default_layer else []
    if problems:  # of half a set, conflicts would be false ones
        raise PolicyError(tuple(sorted(set(problems))))
    default = effective(own, problems)
    namespaces = {name.removesuffix(".yaml"): effective([*own, layer], problems) for name, layer in layers.items()}
    if problems:
        raise PolicyError(tuple(sorted(set(problems))))
    cluster = cluster_layer.convert(Cluster) if cluster_layer else Cluster()
    return PolicySet(
        cluster=cluster,
        catalogue=Catalogue(BUILT_IN, cluster.frameworks),
        default=default,
        namespaces=namespaces,
    )


class PolicyStore:
    """The policies in force: the last set of files that was good."""

    def __init__(self, directory: Path) -> None:
        """
        Read *directory*.

        Raises:
            PolicyError: If it cannot be used.
        """
        self._directory = directory
        self._state = _state(directory)
        self.current = load(directory)
        self.newest_error: PolicyError | None = None  # of files newer than those in force

    def refresh(self) -> bool:
        """Read the directory again if its state has changed; return whether a new set is in force."""
        state = _state(self._directory)
        if state == self._state:
            return False
        try:
            current = load(self._directory)
        except PolicyError as error:
            self.newest_error = error
            current = None
        # A swap in the middle of reading shows in the state, and is read again by the next call.
        self._state = state
        if current is None:
            return False
        self.current = current
        self.newest_error = None
        return True


def _state(directory: Path) -> tuple[object, ...]:
    """What changes when any policy file does: a ConfigMap swaps the link `..data`, an editor the files."""
    try:
        with os.scandir(_resolved(directory)) as entries:
            files = sorted(
                (entry.name, status.st_mtime_ns, status.st_size, status.st_ino)
                for entry in entries
                if entry.name.lower().endswith((".yaml", ".yml")) and (status := entry.stat())
            )
    except OSError as error:
        return (type(error).__name__,)
    return (str(_resolved(directory)), *files)


def _resolved(directory: Path) -> Path:
    """The directory that holds one consistent state: what `..data` points to now, in a ConfigMap volume."""
    data = directory / "..data"
    return data.resolve() if data.is_symlink() else directory


def _read_layers(directory: Path, problems: list[Problem]) -> dict[str, Layer]:
    snapshot = _resolved(directory)
    try:
        names = policy_files(snapshot)
    except OSError as error:
        message = f"cannot be read ({error.strerror}): name the directory that holds the policy files"
        raise PolicyError((Problem("", 0, "", message),)) from None
    layers = {}
    for name in names:
        if problem := problem_of_name(name):
            problems.append(problem)
            continue
        text = _text(snapshot / name, problems)
        if text is not None:
            layers[name] = read_layer(name, text, problems)
    return layers


def policy_files(directory: Path) -> list[str]:
    """
    Name the policy files in a directory.

    Raises:
        OSError: If it cannot be read.
    """
    return sorted(
        entry.name
        for entry in _resolved(directory).iterdir()
        if entry.suffix.lower() in (".yaml", ".yml") and not entry.name.startswith(".") and not _is_kustomization(entry)
    )


def kustomization(directory: Path) -> tuple[str, str] | None:
    """Return name and text of the file in which kustomize is told what to make of the directory, if there is one."""
    for name in ("Kustomization", *_KUSTOMIZATIONS):
        path = directory / name
        if name == "Kustomization" or _is_kustomization(path):
            with suppress(OSError):  # it is not there, or it is no matter of ours
                return name, path.read_text(errors="replace")
    return None


def _is_kustomization(path: Path) -> bool:
    """Whether the file is kustomize's: one of this name that says nothing of kustomize is a namespace's policy."""
    if path.name not in _KUSTOMIZATIONS or not path.is_file():
        return False
    text = path.read_bytes()[:LARGEST_BYTES]
    return re.search(rb"^(apiVersion: *[\"']?kustomize|configMapGenerator:)", text, re.MULTILINE) is not None


def _text(path: Path, problems: list[Problem]) -> str | None:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
        return content.decode()
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        problems.append(Problem(path.name, line, "", "not UTF-8: save the file as UTF-8"))
    except OSError as error:
        problems.append(Problem(path.name, 0, "", f"cannot be read: {error.strerror}"))
    return None
