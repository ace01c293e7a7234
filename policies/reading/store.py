"""From a directory to the policies in force."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from policies.cluster import Cluster
from policies.errors import PolicyError, Problem, quoted
from policies.policy_set import PolicySet
from policies.reading.directory import (
    TooManyFilesError,
    paths_from,
    read_files,
    settled,
    state_of,
)
from policies.reading.in_force import InForce, PolicyFile, broken_file, put_in_force
from policies.reading.layers import CLUSTER_FILE, DEFAULT_FILE, Layer, owner_of
from policies.reading.troubles import Trouble


def load(directory: Path) -> PolicySet:
    """
    Read a directory of policy files. A missing `_cluster.yaml` or `_default.yaml` means built-in defaults.

    Raises:
        PolicyError: If the directory cannot be read or any file in it has a problem; it carries all of them, and their
            files are paths that begin with *directory* as it was given.
    """
    with paths_from(directory):
        made = put_in_force(settled(directory), None, needs=())
        if made.troubles:
            raise PolicyError(tuple(one.problem for one in made.troubles))
    return made.policies


class PolicyStore:
    """The policies in force. What is broken costs as little as it can; what was good before stays."""

    def __init__(
        self, directory: Path, *, needs: Collection[str] = (CLUSTER_FILE, DEFAULT_FILE), last: Path | None = None
    ) -> None:
        """
        Read *directory*; *last* is one with the `_cluster.yaml` that holds where that of now is broken.

        Raises:
            PolicyError: If it cannot be read, or a file that is *needed* is broken.
        """
        self._directory = directory
        self._needs = needs
        self.troubles: tuple[Trouble, ...] = ()
        with paths_from(directory):
            state = state_of(directory)
            self._files = _first_files(directory, needs)
            self._state = _seen(state, self._files)
            self._take(_first_in_force(self._files, needs, last))

    @property
    def cluster_file(self) -> bytes | None:
        """What is in the `_cluster.yaml` in force: nothing if there is none, None if it is broken or misnamed now."""
        if any(file.problems and owner_of(name, self._files) == CLUSTER_FILE for name, file in self._files.items()):
            return None
        file = self._files.get(CLUSTER_FILE)
        return b"" if file is None else file.content

    def refresh(self) -> bool:
        """Read the directory again if its state has changed; return whether others, or these without troubles, hold."""
        state = state_of(self._directory)
        if state == self._state:
            return False
        try:
            return self._read_again(state)
        except PolicyError as error:
            self._state = state if isinstance(error, TooManyFilesError) else ""  # nothing was seen, so look again
            self._tell_of_none(error.problems)
        except Exception as error:  # noqa: BLE001 - a fault of ours, which nobody sees unless it is told like theirs
            self._state = ""
            said = f"cannot be read by a fault of gpu-share: undo what was changed, and report it ({_named(error)})"
            self._tell_of_none((Problem(str(self._directory), 0, "", said),))
        return False

    def _read_again(self, state: object) -> bool:
        with paths_from(self._directory):
            files = read_files(self._directory, self._files)
        if files is None:
            return False
        made = put_in_force(files, self._in_force, needs=self._needs)
        # What was changed while it was read shows in the state, and is read again by the next call.
        self._state, self._files = _seen(state, files), files
        before, had_troubles = self.current, bool(self.troubles)
        self._take(made)
        return self.current is not before or (had_troubles and not self.troubles)

    def _tell_of_none(self, problems: Iterable[Problem]) -> None:
        """Tell of *problems* for which nothing of the directory is taken up."""
        self._tell(Trouble(one, "", "the last good policies stay in force") for one in problems)
        self.broken_files = 1

    def _take(self, in_force: InForce) -> None:
        self._in_force = in_force
        self.current = in_force.policies
        self._tell(one.below(str(self._directory)) for one in in_force.troubles)  # of many files the first
        self.broken_files = in_force.broken_files  # with the files as they are now

    def _tell(self, troubles: Iterable[Trouble]) -> None:
        """Tell of *troubles*, which are no news if they are the same again."""
        told = tuple(troubles)
        if told != self.troubles:
            self.troubles = told


def _seen(state: object, files: Mapping[str, PolicyFile]) -> object:
    """Return *state*; or none, so that all is read again, where one of its *files* may be readable by then."""
    return "" if any(file.may_pass for file in files.values()) else state


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {quoted(str(error), 120)}"


def _first_in_force(files: Mapping[str, PolicyFile], needs: Collection[str], last: Path | None) -> InForce:
    try:
        return put_in_force(files, None, needs=needs)
    except PolicyError:
        if last is None or (kept := _cluster_layer(last)) is None:
            raise
        return put_in_force(files, None, needs=[one for one in needs if one != CLUSTER_FILE], last=kept)


def _cluster_layer(directory: Path) -> Layer | None:
    """Read the `_cluster.yaml` of *directory*; None where there is no good one."""
    try:
        file = settled(directory, of=CLUSTER_FILE).get(CLUSTER_FILE)
    except PolicyError:
        return None
    return file.layer if file is not None and not file.problems else None


def _first_files(directory: Path, needs: Collection[str]) -> dict[str, PolicyFile]:
    """
    Read what is there when a process starts; of too many files `_cluster.yaml` alone, if that is all it needs.

    Raises:
        PolicyError: If *directory* cannot be read, or has too many files for a process that needs `_default.yaml`.
    """
    try:
        return settled(directory)
    except TooManyFilesError as error:
        if DEFAULT_FILE in needs:
            raise
        return {DEFAULT_FILE: broken_file(*error.problems), **settled(directory, of=CLUSTER_FILE)}


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
        state = state_of(self._directory, only=CLUSTER_FILE)
        if state == self._state:
            return None
        with paths_from(self._directory):
            files = read_files(self._directory, {}, of=CLUSTER_FILE)
            if files is None or state != state_of(self._directory, only=CLUSTER_FILE):  # it may be half of two states
                return None
            self._state = _seen(state, files)
            return _cluster_of(files)


def load_cluster(directory: Path) -> Cluster:
    """
    Read `_cluster.yaml` alone; the built-in defaults hold where it is missing.

    Raises:
        PolicyError: If *directory* cannot be read, or the file is broken or has another name.
    """
    with paths_from(directory):
        return _cluster_of(settled(directory, of=CLUSTER_FILE))


def _cluster_of(files: Mapping[str, PolicyFile]) -> Cluster:
    if problems := tuple(problem for file in files.values() for problem in file.problems):
        raise PolicyError(problems)
    return files[CLUSTER_FILE].layer.convert(Cluster) if files else Cluster()
