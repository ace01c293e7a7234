"""Kubeconfigs that differ from that of a stand-in for an API server."""

import json
from pathlib import Path

import yaml


def changed(file: Path, *, user: object = None, **cluster: object) -> Path:
    """Write a kubeconfig beside *file*, with another user, or with other fields of its cluster."""
    known = yaml.safe_load(file.read_text())
    known["users"][0]["user"] = known["users"][0]["user"] if user is None else user
    known["clusters"][0]["cluster"] |= cluster
    copy = file.with_name("changed")
    copy.write_text(json.dumps(known))
    return copy
