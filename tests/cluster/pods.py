"""Pods in a namespace of a test, and what they find inside their containers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import yaml

from tests.cluster.api import Answer, Object
from tests.cluster.cluster import Cluster, eventually

VLLM = "vllm/vllm-openai:v0.11.0"
SERVING = "tensorflow/serving:2.19.1-gpu"
PYTORCH = "pytorch/pytorch:2.10.0-cuda13.0-cudnn9-runtime"
BUSYBOX = "busybox:1.37"
_NUMBERS = count(1)
_MADE: list[str] = []  # namespaces that were not there before


@dataclass(frozen=True, slots=True)
class Report:
    """What tests/cluster/workload/report.py found in its container."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    mounts: Mapping[str, str]  # mount point: type of file system
    uid: int
    writable: Sequence[str]


def pod(share: str | None, *containers: Object, name: str = "model", annotations: Any = None, **spec: Any) -> Object:
    """A pod with one container of no framework, or with *containers*."""
    written = ({} if share is None else {"gpu-share": share}) | (annotations or {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": written},
        "spec": {
            "containers": list(containers) or [container()],
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            **spec,
        },
    }


def container(name: str = "main", image: str = BUSYBOX, **fields: Any) -> Object:
    return {"name": name, "image": image, "imagePullPolicy": "IfNotPresent", **fields}


def stubborn(pause: str) -> Object:
    """A container that ignores SIGTERM, whose process is told from others' by its *pause* in seconds."""
    return container(command=["sh", "-c", f"trap '' TERM; while :; do sleep {pause}; done"])


@dataclass(frozen=True)
class Place:
    """A namespace of a test."""

    cluster: Cluster
    name: str

    @classmethod
    def make(
        cls,
        cluster: Cluster,
        name: str = "",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> "Place":
        """Create a namespace, if it is not there, and wait until pods can be made in it."""
        name = name or f"test-{next(_NUMBERS)}"
        body = {"metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}}}
        eventually(lambda: not _is_being_removed(cluster, name), what=f"{name} of an earlier test has gone")
        made = cluster.api.ask("POST", "/api/v1/namespaces", body)
        assert made.ok or made.reason == "AlreadyExists", made.message
        if made.ok:
            _MADE.append(name)
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        eventually(lambda: cluster.api.ask("GET", account).ok, what="the default service account")
        return cls(cluster, name)

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.name}/pods"

    def create(self, on: Object, *, dry_run: bool = False) -> Answer:
        return self.cluster.api.create(on, self.name, dry_run=dry_run)

    def started(self, on: Object) -> Object:
        """Create a pod and give it as it is once it runs."""
        made = self.create(on)
        assert made.ok, made.message
        return self.running(on["metadata"]["name"])

    def apply(self, *objects: Object) -> str:
        """Apply objects of any kind, and give what kubectl said beside, such as warnings."""
        ran = self.cluster.attempt(f"kubectl -n {self.name} apply -f -", stdin=yaml.safe_dump_all(objects))
        assert ran.returncode == 0, ran.stderr
        return ran.stderr

    def get(self, name: str) -> Object:
        found: Object = self.cluster.api.get(f"{self.path}/{name}")
        return found

    def all(self, selector: str = "") -> list[Object]:
        found: list[Object] = self.cluster.api.get(self.path, labelSelector=selector)["items"]
        return found

    def running(self, name: str, *, seconds: float = 60) -> Object:
        """Wait until a pod runs with all containers."""
        return eventually(lambda: if_running(self.get(name)), seconds=seconds, what=f"{self.name}/{name} runs")

    def one_running(self, selector: str, *, seconds: float = 60) -> Object:
        """Wait until a pod of a workload runs, whatever its name is."""
        return eventually(
            lambda: next(filter(None, map(if_running, self.all(selector))), None),
            seconds=seconds,
            what=f"a pod of {selector} runs in {self.name}",
        )

    def report(self, name: str, in_container: str = "main") -> Report:
        """Give what a container found."""
        path = f"{self.path}/{name}/log"
        line = eventually(
            lambda: _first_line(self.cluster.api.ask("GET", path, container=in_container)), what=f"a report of {name}"
        )
        return Report(**json.loads(line))

    def events(self, reason: str, kind: str) -> list[str]:
        """Give the messages of events here with *reason*, about objects of *kind*."""
        reason += f",involvedObject.kind={kind}"
        listed = self.cluster.api.get(f"/api/v1/namespaces/{self.name}/events", fieldSelector=f"reason={reason}")
        return [str(one["message"]) for one in listed["items"]]

    def empty(self) -> None:
        """Delete all pods, and wait until their vGPUs are free again."""
        self.cluster.run(
            f"kubectl -n {self.name} delete deploy,sts,job,cronjob,pod --all --wait=false --grace-period=1"
        )
        eventually(lambda: not self.all(), what=f"no pods in {self.name}")

    def delete_twice(self, name: str) -> None:
        """Delete a pod, and then by force: its containers keep the time that they were given first."""
        for how in ("--wait=false", "--force --grace-period=0"):
            self.cluster.run(f"kubectl -n {self.name} delete pod {name} {how}")

    def remove(self) -> None:
        self.empty()
        self.cluster.api.ask("DELETE", f"/api/v1/namespaces/{self.name}")


def remove_all(cluster: Cluster, *, keep: str = "") -> None:
    """Remove all namespaces that tests have made, but one."""

    def present() -> list[str]:
        listed = [one["metadata"]["name"] for one in cluster.api.get("/api/v1/namespaces")["items"]]
        return [name for name in listed if name in _MADE and name != keep]

    for name in present():
        cluster.api.ask("DELETE", f"/api/v1/namespaces/{name}")
    eventually(lambda: not present(), what="the namespaces of the tests have gone")


def _is_being_removed(cluster: Cluster, name: str) -> bool:
    found = cluster.api.ask("GET", f"/api/v1/namespaces/{name}")
    return found.ok and "deletionTimestamp" in found.body["metadata"]


def if_running(on: Object) -> Object | None:
    states = on["status"].get("containerStatuses", [])
    assert on["status"]["phase"] != "Failed", on["status"]
    return on if states and all(one.get("started") for one in states) else None


def _first_line(answer: Answer) -> str:
    lines = [line for line in str(answer.body).splitlines() if line.startswith("{")] if answer.ok else []
    return lines[0] if lines else ""
