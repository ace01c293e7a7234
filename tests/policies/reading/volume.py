"""Directories of policy files, as people and the kubelet write them."""

import shutil
from collections.abc import Callable
from pathlib import Path

from policies.errors import Problem
from policies.policy_set import PolicySet
from policies.reading.layers import Layer


def write(directory: Path, **files: str) -> Path:
    directory.mkdir(exist_ok=True)
    for name, text in files.items():
        (directory / f"{name}.yaml").write_text(text)
    return directory


def swap(volume: Path, number: int, **files: str) -> None:
    """Publish files as the kubelet does: a new directory, then one rename of the link `..data`."""
    volume.mkdir(exist_ok=True)
    write(volume / f"..2026_11_20.{number}", **files)
    link = volume / "..data_tmp"
    link.symlink_to(f"..2026_11_20.{number}")
    link.replace(volume / "..data")
    for name in files:
        visible = volume / f"{name}.yaml"
        if not visible.is_symlink():
            visible.symlink_to(f"..data/{name}.yaml")
    for path in volume.iterdir():
        if path.is_symlink() and not path.exists():
            path.unlink()
        elif path.is_dir() and path.name.startswith("..2026") and path.name != f"..2026_11_20.{number}":
            shutil.rmtree(path)


def maximum(of: PolicySet, namespace: str = "team") -> str:
    return str(of.of(namespace).policy.share.maximum)


def swapping(read: Callable[..., Layer], volume: Path) -> Callable[..., Layer]:
    """Read a file's text, and swap the volume before the next file is opened."""
    rest = [lambda: swap(volume, 3, _default="share: {minimum: '0.5', maximum: '0.6'}", team="mode: warn")]

    def reading(file: str, text: str, problems: list[Problem], *, most: int) -> Layer:
        if rest:
            rest.pop()()
        return read(file, text, problems, most=most)

    return reading
