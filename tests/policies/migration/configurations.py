"""Configurations of NVIDIA's device plugin, and what becomes of them."""

import json
import tempfile
from pathlib import Path
from typing import Any

import yaml

from policies.migration.imported import Imported
from policies.migration.nvidia import import_nvidia
from policies.migration.report import as_json, files
from policies.policy_set import PolicySet
from policies.reading.store import load

TIME_SLICED = """\
version: v1
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: 4
"""
MPS = TIME_SLICED.replace("timeSlicing", "mps").replace("4", "10")
UNSHARED = "version: v1\nflags: {migStrategy: none}\n"


def config_map(**texts: str) -> str:
    """Write a ConfigMap as `kubectl get -o yaml` does."""
    data = "".join(
        f"  {name}: |\n" + "".join(f"    {line}\n" for line in text.splitlines()) for name, text in texts.items()
    )
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: configs}}\ndata:\n{data}"


def imported(text: str | dict[str, Any], **options: Any) -> Imported:
    return import_nvidia(text if isinstance(text, str) else written(text), "config.yaml", **options)


def written(value: Any) -> str:
    """Write a value as YAML without aliases."""
    text: str = yaml.safe_dump(json.loads(json.dumps(value)))
    return text


def outcomes(made: Imported) -> dict[str, str]:
    """What became of each key; with the configuration before it, if it has a name."""
    return {f"{one.configuration}:{one.key}".lstrip(":"): one.outcome for one in made.findings}


def in_force(made: Imported) -> PolicySet:
    """The policies that the files are, as `gpu-share policy check` reads them, and those of the other namespaces."""
    namespaces = {f"{name.lower()}.yaml": text for name, text in as_json(made)["namespaces"].items()}
    with tempfile.TemporaryDirectory() as directory:
        for name, text in (files(made) | namespaces).items():
            (Path(directory) / name).write_text(text)
        return load(Path(directory))
