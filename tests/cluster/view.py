"""The commands of the view, as a user of the cluster runs them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster.cluster import Cluster


def view(*words: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of `gpu-share`."""
    command = [sys.executable, "-m", "gpu_share", *words]
    environment = os.environ | ({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)


def shown(*words: str, kubeconfig: Path | None = None) -> Any:
    """Run a command of `gpu-share`, and read the JSON that it prints."""
    ran = view(*words, "-o", "json", kubeconfig=kubeconfig)
    assert ran.stdout, ran.stderr
    return json.loads(ran.stdout)


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
