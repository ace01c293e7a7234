"""From a directory to the policies in force. The only file of the rules that touches the file system."""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from policies.cluster import Cluster
from policies.errors import PolicyError, Problem, quoted
from policies.policy_set import PolicySet
from policies.reading.document import LARGEST_BYTES
from policies.reading.in_force import PolicyFile, put_in_force
from policies.reading.layers import CLUSTER_FILE, DEFAULT_FILE, Layer, problem_of_name, read_layer
from policies.reading.troubles import Trouble
from program.files import read_file

_LINK = "..data"  # in a ConfigMap's volume
_ENDINGS = (".yaml", ".yml")
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml")


def load(directory: Path) -> PolicySet:
    """
    Read a directory of policy files. A missing `_cluster.yaml` or `_default.yaml` means built-in defaults.

    Raises:
        PolicyError: If the directory cannot be read or any file in it has a problem; it carries all of them, and their
            files are paths that begin with *directory* as it was given.
    """
    with _paths_from(directory):
        made = put_in_force(_settled(directory), None, needs=())
        if made.troubles:
            raise PolicyError(tuple(one.problem for one in made.troubles))
    return made.policies


class PolicyStore:
    """The policies in force. What is broken costs as little as it can; what was good before stays."""

    def __init__(self, directory: Path, *, needs: Collection[str] = (CLUSTER_FILE, DEFAULT_FILE)) -> None:
        """
        Read *directory*.

        Raises:
            PolicyError: If it cannot be read, or a file that is *needed* is broken.
        """
        self._directory = directory
        self._needs = needs
        with _paths_from(directory):
            self._state = _state(directory)
            self._files = _settled(directory)
            self._in_force = put_in_force(self._files, None, needs=needs)
        self.current = self._in_force.policies
        self.troubles = self._troubles()  # with the files as they are now

    def refresh(self) -> bool:
        """Read the directory again if its state has changed; return whether others, or these without troubles, hold."""
        state = _state(self._directory)
        if state == self._state:
            return False
        try:
            with _paths_from(self._directory):
                files = _read_files(self._directory, self._files)
        except PolicyError as error:
            self._state = ""  # nothing was seen, so look again
            self.troubles = tuple(Trouble(one, "", "the last good policies stay in force") for one in error.problems)
            return False
        if files is None:
            return False
        # What was changed while it was read shows in the state, and is read again by the next call.
        self._state, self._files = state, files
        before, had_troubles = self.current, bool(self.troubles)
        self._in_force = put_in_force(files, self._in_force, needs=self._needs)
        self.current = self._in_force.policies
        self.troubles = self._troubles()
        return self.current is not before or (had_troubles and not self.troubles)

    def _troubles(self) -> tuple[Trouble, ...]:
        return tuple(one.below(str(self._directory)) for one in self._in_force.troubles)


class ClusterFile:
    """`_cluster.yaml` alone, for a process that needs none of the other files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._state: object = ""

    def newest(self) -> Cluster | None:
        """
        Read the file if it has changed since the last call; None if it has not.

        Raises:
            PolicyError: If it has changed, and is broken or cannot be read.
        """
        state = _state(self._directory, only=CLUSTER_FILE)
        if state == self._state:
            return None
        path = _resolved(self._directory) / CLUSTER_FILE
        file = None if _is_missing(path) else _read_file(path, None, {})
        if state != _state(self._directory, only=CLUSTER_FILE):  # it may be half of two states
            return None
        self._state = state
        if file is None:
            return Cluster()
        if file.problems:
            raise PolicyError(tuple(one.below(str(self._directory)) for one in file.problems))
        return file.layer.convert(Cluster)


@contextmanager
def _paths_from(directory: Path) -> Iterator[None]:
    """Name files in errors by their paths from *directory* on."""
    try:
        yield
    except PolicyError as error:
        raise PolicyError(tuple(one.below(str(directory)) for one in error.problems)) from None


def _state(directory: Path, *, only: str = "") -> object:
    """
    What changes when any policy file does, or *only* one.

    A volume of a ConfigMap swaps the link `..data`, so that one look is enough. Elsewhere editors change the files.
    """
    with suppress(OSError):
        return (directory / _LINK).readlink()
    try:
        if only:
            return _version((directory / only).stat())
        with os.scandir(directory) as entries:
            files = (entry for entry in entries if entry.name.lower().endswith(_ENDINGS))
            return tuple(sorted((entry.name, *_version(_status(entry))) for entry in files))
    except OSError as error:
        return type(error).__name__


def _status(entry: "os.DirEntry[str]") -> os.stat_result:
    try:
        return entry.stat()
    except OSError:  # a link to nowhere
        return entry.stat(follow_symlinks=False)


def _version(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino


def _resolved(directory: Path) -> Path:
    """The directory that holds one consistent state: what `..data` points to now, in a ConfigMap volume."""
    with suppress(OSError):
        return directory / (directory / _LINK).readlink()
    return directory


def _settled(directory: Path) -> dict[str, PolicyFile]:
    """
    Read all policy files of one state of *directory*.

    Raises:
        PolicyError: If the directory cannot be read.
    """
    while (files := _read_files(directory, {})) is None:
        pass
    return files


def _read_files(directory: Path, known: Mapping[str, PolicyFile]) -> dict[str, PolicyFile] | None:
    """Read all policy files; None if a volume was swapped meanwhile, so that they may be of two states."""
    snapshot = _resolved(directory)
    try:
        same: dict[bytes, Layer] = {}  # of good files by content: many are made from one template
        files = {name: _read_file(snapshot / name, known.get(name), same) for name in policy_files(snapshot)}
    except OSError as error:
        if snapshot != _resolved(directory):
            return None
        message = f"cannot be read ({error.strerror}): name the directory that holds the policy files"
        raise PolicyError((Problem("", 0, "", message),)) from None
    return files if snapshot == _resolved(directory) else None


def _is_missing(path: Path) -> bool:
    """Whether the directory is there and has no such file."""
    with suppress(OSError):
        return not path.exists() and path.parent.is_dir()
    return False


def _read_file(path: Path, known: PolicyFile | None, same: dict[bytes, Layer]) -> PolicyFile:
    """Read one file, and parse it unless its content is *known*, or the *same* as another namespace's; never raises."""
    name, is_policy = path.name, path.name != CLUSTER_FILE
    nothing = Layer(name, {}, {})
    if problem := problem_of_name(name):
        return PolicyFile(None, nothing, (msgspec.structs.replace(problem, file=quoted(name, 255)[1:-1]),))
    try:
        content = read_file(path, most_bytes=LARGEST_BYTES + 1)
    except OSError as error:
        return PolicyFile(None, nothing, (Problem(name, 0, "", f"cannot be read: {error.strerror}"),))
    if known is not None and known.content == content:
        return known
    if is_policy and (layer := same.get(content)):
        return PolicyFile(content, msgspec.structs.replace(layer, file=name), ())
    problems: list[Problem] = []
    try:
        layer = read_layer(name, content.decode(), problems)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return PolicyFile(content, nothing, (Problem(name, line, "", "not UTF-8: save the file as UTF-8"),))
    if is_policy and not problems:
        same[content] = layer
    return PolicyFile(content, layer, tuple(problems))


def policy_files(directory: Path) -> list[str]:
    """
    Name the policy files in a directory.

    Raises:
        OSError: If it cannot be read.
    """
    snapshot = _resolved(directory)
    names = {one.name for one in snapshot.iterdir() if one.name.lower().endswith(_ENDINGS) and one.name[0] != "."}
    return sorted(names - {name for name in names.intersection(_KUSTOMIZATIONS) if _is_kustomization(snapshot / name)})


def kustomization(directory: Path) -> tuple[str, str] | None:
    """Return name and text of the file in which kustomize is told what to make of the directory, if there is one."""
    for name in ("Kustomization", *_KUSTOMIZATIONS):
        path = directory / name
        if name == "Kustomization" or _is_kustomization(path):
            with suppress(OSError):  # it is not there, or it is no matter of ours
                return name, read_file(path, most_bytes=LARGEST_BYTES).decode(errors="replace")
    return None


def _is_kustomization(path: Path) -> bool:
    """Whether the file is kustomize's: one of this name that says nothing of kustomize is a namespace's policy."""
    try:
        text = read_file(path, most_bytes=LARGEST_BYTES)
    except OSError:
        return False
    return re.search(rb"^(apiVersion: *[\"']?kustomize|configMapGenerator:)", text, re.MULTILINE) is not None
