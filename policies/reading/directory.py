"""A directory of policy files to what each of them says. The only file of the rules that touches the file system."""

import errno
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec

from policies.errors import PolicyError, Problem, quoted
from policies.reading.document import LARGEST_BYTES
from policies.reading.in_force import PolicyFile, broken_file
from policies.reading.kustomized import Kustomization
from policies.reading.layers import CLUSTER_FILE, Layer, lacks_ending, owner_of, problem_of_name, read_layer
from policies.reading.told import MOST_OF_A_FILE, MOST_TOLD
from program.files import read_file

_LINK = "..data"  # in a ConfigMap's volume
_ENDINGS = (".yaml", ".yml")
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml")
# Each takes up to 9 KB in each process of the webhook, and an object of 1 MiB can hold 120,000 of them.
MOST_FILES = 4_000
# For which a file cannot be read until it changes; others, such as want of descriptors or memory, pass by themselves.
_LASTING = frozenset(
    {
        errno.EACCES,
        errno.EINVAL,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ENXIO,
        errno.EPERM,
    }
)


class TooManyFilesError(PolicyError):
    """A directory with more policy files than are read."""


@contextmanager
def paths_from(directory: Path) -> Iterator[None]:
    """Name files in errors by their paths from *directory* on."""
    try:
        yield
    except PolicyError as error:
        raise type(error)(tuple(one.below(str(directory)) for one in error.problems)) from None


def state_of(directory: Path, *, only: str = "") -> object:
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


def write_volume(directory: Path, files: Mapping[str, bytes]) -> None:
    """
    Write *files* into an empty *directory* as a ConfigMap's volume has them, so that they are read as from one.

    Raises:
        OSError: If they cannot be written.
    """
    state = directory / "..files"
    state.mkdir()
    for name, content in files.items():
        try:
            (state / Path(name).name).write_bytes(content)
        except ValueError as error:  # NUL in a name, from what is no API server
            raise OSError(errno.EINVAL, f"{quoted(name)} is no name of a file") from error
    (directory / _LINK).symlink_to(state.name)


def _version(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino


def _resolved(directory: Path) -> Path:
    """The directory that holds one consistent state: what `..data` points to now, in a ConfigMap volume."""
    with suppress(OSError):
        return directory / (directory / _LINK).readlink()
    return directory


def settled(directory: Path, *, of: str | None = None) -> dict[str, PolicyFile]:
    """
    Read all policy files of one state of *directory*, or those that count for one *of* them.

    Raises:
        TooManyFilesError: If there are more than are read.
        PolicyError: If the directory cannot be read.
    """
    while (files := read_files(directory, {}, of=of)) is None:
        pass
    return files


def read_files(
    directory: Path, known: Mapping[str, PolicyFile], *, of: str | None = None
) -> dict[str, PolicyFile] | None:
    """
    Read all policy files, or those that count for one *of* them; None if a volume was swapped meanwhile.

    Raises:
        TooManyFilesError: If there are more than are read.
        PolicyError: If the directory cannot be read.
    """
    snapshot = _resolved(directory)
    try:
        # In a ConfigMap's volume nothing has another purpose.
        unread = unread_files(snapshot) if snapshot != directory else []
        every = dict.fromkeys(policy_files(snapshot) + unread)
        names = [one for one in every if of is None or owner_of(one, every) == of]
        if len(names) > MOST_FILES:
            message = f"expected at most {MOST_FILES} policy files, got {len(names)}: remove those that say nothing"
            raise TooManyFilesError((Problem("", 0, "", message),))
        files = _read_each(snapshot, names, known)
    except OSError as error:
        if snapshot != _resolved(directory):
            return None
        message = f"cannot be read ({error.strerror}): name the directory that holds the policy files"
        raise PolicyError((Problem("", 0, "", message),)) from None
    return files if snapshot == _resolved(directory) else None


def _read_each(snapshot: Path, names: list[str], known: Mapping[str, PolicyFile]) -> dict[str, PolicyFile]:
    same: dict[bytes, Layer] = {}  # of good files by content: many are made from one template
    files, left = {}, MOST_TOLD
    for name in names:
        file = _read_file(snapshot / name, known.get(name), same, most=max(1, min(MOST_OF_A_FILE, left)))
        if file is not None:
            files[name] = file
            left -= len(file.problems)
    return files


def _read_file(path: Path, known: PolicyFile | None, same: dict[bytes, Layer], *, most: int) -> PolicyFile | None:
    """
    Read one file, and parse it unless its content is *known*, or the *same* as another namespace's; never raises.

    None for kustomize's, which could not be told from a policy when the names were listed if it could not be read then.
    """
    name, is_policy = path.name, path.name != CLUSTER_FILE
    if problem := problem_of_name(name):
        return broken_file(msgspec.structs.replace(problem, file=quoted(name, 255)[1:-1]))
    try:
        content = read_file(path, most_bytes=LARGEST_BYTES + 1)
    except OSError as error:
        problem = Problem(name, 0, "", f"cannot be read: {error.strerror}")
        return broken_file(problem, may_pass=error.errno not in _LASTING)
    if name in _KUSTOMIZATIONS and _is_of_kustomize(content):
        return None
    if known is not None and known.content == content:
        return known
    if is_policy and (layer := same.get(content)):
        return PolicyFile(content, msgspec.structs.replace(layer, file=name), ())
    problems: list[Problem] = []
    try:
        layer = read_layer(name, content.decode(), problems, most=most)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return broken_file(Problem(name, line, "", "not UTF-8: save the file as UTF-8"))
    if problems:
        return broken_file(*problems)
    if is_policy:
        same[content] = layer
    return PolicyFile(content, layer, ())


def policy_files(directory: Path) -> list[str]:
    """
    Name the policy files in a directory.

    Raises:
        OSError: If it cannot be read.
    """
    snapshot = _resolved(directory)
    names = {one.name for one in snapshot.iterdir() if one.name.lower().endswith(_ENDINGS) and one.name[0] != "."}
    return sorted(names - {name for name in names.intersection(_KUSTOMIZATIONS) if _is_kustomization(snapshot / name)})


def unread_files(directory: Path) -> list[str]:
    """
    Name the files that nobody reads for want of an ending; one beside the policy file itself is a copy of it.

    Raises:
        OSError: If the directory cannot be read.
    """
    snapshot = _resolved(directory)
    names = {one.name for one in snapshot.iterdir()}
    unread = (name for name in names if lacks_ending(name) and not name.lower().endswith(_ENDINGS))
    return sorted(
        name for name in unread if f"{name.partition('.')[0]}.yaml" not in names and (snapshot / name).is_file()
    )


def kustomization(directory: Path) -> Kustomization | None:
    """Return the file in which kustomize is told what to make of the directory, if there is one."""
    for name in ("Kustomization", *_KUSTOMIZATIONS):
        path = directory / name
        if name == "Kustomization" or _is_kustomization(path):
            with suppress(OSError):  # it is not there, or it is no matter of ours
                text = read_file(path, most_bytes=LARGEST_BYTES).decode(errors="replace")
                return Kustomization(name=name, text=text, has_file=partial(_has_file, directory))
    return None


def _has_file(directory: Path, path: str) -> bool:
    with suppress(OSError, ValueError):  # a name that is too long, or that no file can have
        return (directory / path).is_file()
    return False


def _is_kustomization(path: Path) -> bool:
    """Whether the file is kustomize's: one of this name that says nothing of kustomize is a namespace's policy."""
    try:
        return _is_of_kustomize(read_file(path, most_bytes=LARGEST_BYTES))
    except OSError:
        return False


def _is_of_kustomize(content: bytes) -> bool:
    return re.search(rb"^(apiVersion: *[\"']?kustomize|configMapGenerator:)", content, re.MULTILINE) is not None
