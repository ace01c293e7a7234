"""The commands of the view, as a user of the cluster runs them."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster.cluster import Cluster, eventually

log = logging.getLogger(__name__)


def view(*words: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of `gpu-share`."""
    command = [sys.executable, "-m", "gpu_share", *words]
    environment = os.environ | ({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)
    if "json" not in words:
        log.info("$ gpu-share %s\n%s%s", " ".join(words), ran.stdout, ran.stderr)
    return ran


def shown(*words: str, kubeconfig: Path | None = None) -> Any:
    """Run a command of `gpu-share`, and read the JSON that it prints."""
    ran = view(*words, "-o", "json", kubeconfig=kubeconfig)
    assert ran.stdout, f"exit code {ran.returncode}: {ran.stderr}"
    return json.loads(ran.stdout)


def tenants_in(namespace: str) -> set[str]:
    """Name the pods of a namespace that have a share, by `gpu-share top`."""
    gpus = (gpu for node in shown("top")["nodes"] for gpu in node["gpus"])
    return {one["pod"] for gpu in gpus for one in gpu["tenants"] if one["namespace"] == namespace}


def explained(name: str, namespace: str) -> dict[str, str]:
    """Give the sections of the explanation of one pod, or of an object without pods, and its title under ""."""
    (one,) = shown("explain", name, "-n", namespace)
    return {"": one["title"], **{section["title"]: "\n".join(section["lines"]) for section in one["sections"]}}


def says(name: str, namespace: str, section: str, text: str) -> dict[str, str]:
    """Wait until the explanation of a pod says something."""

    def look() -> dict[str, str] | None:
        found = explained(name, namespace)
        return found if text in found.get(section, "") else None

    return eventually(look, what=f"explain {name} says {text}")


def is_well() -> bool:
    """Whether doctor finds nothing wrong with the installation; a node's status may be ten seconds old."""
    return all(one["status"] != "failure" for one in shown("doctor"))


@contextmanager
def account(cluster: Cluster, name: str, directory: Path) -> Iterator[Path]:
    """Make a user without any rights, and yield its kubeconfig."""
    cluster.run(f"kubectl -n default create serviceaccount {name}")
    try:
        token = cluster.run(f"kubectl -n default create token {name}").strip()
        config = json.loads(cluster.run("kubectl config view --raw --minify --flatten -o json"))
        config["users"][0]["user"] = {"token": token}
        path = directory / f"kubeconfig-{name}"
        path.write_text(json.dumps(config))
        yield path
    finally:
        cluster.run(f"kubectl -n default delete serviceaccount {name}")
