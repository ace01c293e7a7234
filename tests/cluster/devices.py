"""Installations whose `nodes` say of which devices shares can be: MIG instances, or models of GPUs."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from tests.cluster.api import Object
from tests.cluster.cluster import eventually
from tests.cluster.image import ROOT
from tests.cluster.installation import SIMULATED, Installation
from tests.cluster.pods import Place
from tests.cluster.webhooks import decisions

SHIPPED = (ROOT / "policies" / "files" / "_cluster.yaml").read_text()


@contextmanager
def put_back(installation: Installation, policies: Mapping[str, str]) -> Iterator[Installation]:
    """Put back what was there before tests with these *policies* of namespaces."""
    yield installation
    installation.write_policies(_cluster=SHIPPED, **dict.fromkeys(policies))
    installation.apply(SIMULATED)
    installation.wait_until_ready()


def share(
    installation: Installation,
    overlay: str,
    nodes: Sequence[Mapping[str, Any]],
    policies: Mapping[str, str],
    *,
    asks: Object,
) -> None:
    """Install *overlay* with other `nodes`, and wait until webhooks grant what a pod of the first policy *asks*."""
    cluster = yaml.safe_dump({**yaml.safe_load(SHIPPED), "nodes": list(nodes)})
    installation.write_policies(_cluster=cluster, **policies)
    take_up(installation, overlay, asks=asks, namespace=next(iter(policies)))


def take_up(installation: Installation, overlay: str, *, asks: Object, namespace: str) -> Place:
    """Install *overlay*, and wait until webhooks grant what only by the policies of now a pod of *namespace* *asks*."""
    installation.apply(overlay)
    installation.run("kubectl -n gpu-share rollout status deployment/gpu-share-webhook")
    installation.run("kubectl -n gpu-share rollout status daemonset/gpu-share-plugin")
    installation.hurry("webhook")
    installation.hurry("plugin")
    eventually(lambda: decisions(installation.cluster, asks, namespace) == {True}, what="each webhook knows the policy")
    place = Place.make(installation.cluster, namespace)  # those that end may still be asked for a moment
    eventually(
        lambda: all(place.create(asks, dry_run=True).ok for _ in range(10)), what="no webhook of before is asked"
    )
    return place


@contextmanager
def device_classes(installation: Installation) -> Iterator[None]:
    """Have the classes of what is installed in the cluster."""
    policies = str(installation.tree / "policies" / "files")
    command = [sys.executable, "-m", "gpu_share", "policy", "classes", "--policies", policies]
    classes = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    installation.cluster.run("kubectl apply -f -", stdin=classes)
    yield
    installation.cluster.run("kubectl delete -f -", stdin=classes)


@contextmanager
def by_dra(installation: Installation, namespace: str, *, devices: int) -> Iterator[Place]:
    """Give a namespace whose shares the scheduler allocates, with the classes of what is installed."""
    with device_classes(installation):
        eventually(lambda: len(installation.devices()) == devices, what=f"{devices} devices are published")
        made = Place.make(installation.cluster, namespace)
        yield made
        made.empty()
        claims = "/apis/resource.k8s.io/v1/resourceclaims"
        eventually(lambda: not installation.cluster.api.get(claims)["items"], what="no claims")
    installation.leave_dra()


def need_dra(installation: Installation) -> None:
    """Skip the test where the cluster has no shares by DRA."""
    version = installation.cluster.api.get("/version")
    if (int(version["major"]), int(version["minor"].rstrip("+"))) < (1, 36):
        pytest.skip("DRA needs Kubernetes 1.36")
