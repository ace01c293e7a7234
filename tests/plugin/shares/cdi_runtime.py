"""A container runtime's half of CDI: how it reads specifications, and what a container then starts with."""

import json
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from posixpath import normpath
from typing import Any

import pytest

jsonschema: Any = pytest.importorskip("jsonschema")  # published without types
SCHEMA = json.loads(Path(__file__).with_name("cdi_schema.json").read_text())
jsonschema.Draft202012Validator.check_schema(SCHEMA)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def read(content: bytes) -> dict[str, Any]:
    """Read one specification, and see that a runtime can."""
    specification: dict[str, Any] = json.loads(content)
    VALIDATOR.validate(specification)
    assert _version(specification["cdiVersion"]) >= _version(needed_version(specification))
    names = [device["name"] for device in specification["devices"]]
    assert len(set(names)) == len(names)
    return specification


def read_directory(directory: Path) -> dict[str, dict[str, Any]]:
    """Read what a runtime reads of a directory: all files of the two endings. Gives the edits of each device."""
    edits: dict[str, dict[str, Any]] = {}
    for path in directory.iterdir():
        if path.suffix in {".json", ".yaml"}:
            specification = read(path.read_bytes())
            for device in specification["devices"]:
                name = f"{specification['kind']}={device['name']}"
                assert name not in edits, "a device that two files have is a device of neither"
                edits[name] = device["containerEdits"]
    return edits


def needed_version(specification: dict[str, Any]) -> str:
    """Say which CDI version a specification needs; runtimes reject a file that says an older one."""
    devices = specification["devices"]
    all_edits = [specification.get("containerEdits", {}), *(device["containerEdits"] for device in devices)]
    if any("annotations" in one for one in (specification, *devices)) or "." in specification["kind"].split("/")[1]:
        return "0.6.0"
    nodes = chain.from_iterable(edits.get("deviceNodes", []) for edits in all_edits)
    if any("hostPath" in node for node in nodes) or any(not device["name"][0].isalpha() for device in devices):
        return "0.5.0"
    mounts = chain.from_iterable(edits.get("mounts", []) for edits in all_edits)
    return "0.4.0" if any("type" in mount for mount in mounts) else "0.3.0"


@dataclass(frozen=True)
class Started:
    """What a container starts with: entries in order, the later ones win or lie on top."""

    env: list[str]
    mounts: list[tuple[str, str]]  # path in the container, path on the host

    @property
    def environment(self) -> dict[str, str]:
        return dict(entry.split("=", 1) for entry in self.env)

    def lies_at(self, path: str) -> str | None:
        """Name the directory of the host that is seen at *path*; None if no mount covers it."""
        for inside, on_host in reversed(self.mounts):
            clean = _clean(inside)
            if path == clean or path.startswith(f"{clean.rstrip('/')}/"):
                return on_host
        return None


def created(
    *, image: dict[str, str], requested: list[tuple[str, str]], mounts: list[tuple[str, str]], edits: dict[str, Any]
) -> Started:
    """
    Create a container as containerd does.

    *requested* and *mounts* are the kubelet's: Allocate's entries and then the pod's, with whatever comes twice.
    """
    env = {name: f"{name}={value}" for name, value in image.items()}
    overriding = {name: f"{name}={value}" for name, value in requested if name in env}
    appended = [f"{name}={value}" for name, value in requested if name not in env]
    return _edited(Started(env=[*(env | overriding).values(), *appended], mounts=_sorted(mounts)), edits)


def _edited(started: Started, edits: dict[str, Any]) -> Started:
    env = list(started.env)
    for entry in edits.get("env", []):
        places = [index for index, other in enumerate(env) if other.split("=")[0] == entry.split("=")[0]]
        if places:
            env[places[-1]] = entry
        else:
            env.append(entry)
    mounts = list(started.mounts)
    for mount in edits.get("mounts", []):
        same = next((index for index, (path, _) in enumerate(mounts) if path == mount["containerPath"]), None)
        if same is not None:
            del mounts[same]
        mounts.append((mount["containerPath"], mount["hostPath"]))
    return replace(started, env=env, mounts=_sorted(mounts))


def _sorted(mounts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(mounts, key=lambda mount: _clean(mount[0]).count("/"))


def _clean(path: str) -> str:
    return normpath(f"/{path.lstrip('/')}")


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))
