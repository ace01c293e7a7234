"""The number of vGPUs changes in a running cluster, while pods with a share come and go."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import count
from random import Random

from tests.cluster.api import Api, Object
from tests.cluster.cluster import eventually
from tests.cluster.installation import VGPU, Installation
from tests.cluster.pods import Place, pod

_ROOM = (
    "requested number of devices unavailable",
    "has room for",
    "must lie on one GPU",
    "more than a GPU of this node has",
    "Insufficient",
    "OutOf",
)
_AT_ONCE = 12  # pods of the load


class Load:
    """Creates pods and deletes them, and keeps what became of those that failed."""

    def __init__(self, place: Place) -> None:
        self.created = 0
        self.denied: list[str] = []
        self.failed: list[str] = []
        self._place, self._ends = place, threading.Event()

    def run(self) -> None:
        api, random, numbers = Api(), Random(1), count()  # noqa: S311 - the same pods each time
        alive: list[str] = []
        while not self._ends.wait(0.2):
            name = f"load-{next(numbers)}"
            answer = api.create(pod(random.choice(["0.1", "0.2", "0.2", "0.4"]), name=name), self._place.name)
            if answer.ok:
                self.created += 1
                alive.append(name)
            else:
                self.denied.append(answer.message)
            if len(alive) > _AT_ONCE:
                self._delete(api, alive.pop(random.randrange(len(alive))))
        for name in alive:
            self._delete(api, name)
        api.close()

    def end(self) -> None:
        self._ends.set()

    def _delete(self, api: Api, name: str) -> None:
        path = f"{self._place.path}/{name}"
        status = api.get(path)["status"]
        if status["phase"] == "Failed":
            self.failed.append(f"{status.get('reason')}: {status.get('message')}")
        api.ask("DELETE", path)


@contextmanager
def load(place: Place) -> Iterator[Load]:
    running = Load(place)
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        yield running
    finally:
        running.end()
        thread.join()


def divide_by(installed: Installation, place: Place, number: int) -> None:
    """Do what the page says: change the number, apply, and have the kubelets look at once."""
    file = installed.tree / "policies" / "files" / "_cluster.yaml"
    lines = [line for line in file.read_text().splitlines() if not line.startswith("vgpusPerGpu:")]
    file.write_text("\n".join([*lines, f"vgpusPerGpu: {number}"]) + "\n")
    installed.run("kubectl apply -k policies/files --server-side --force-conflicts")
    for component in ("webhook", "plugin"):
        installed.hurry(component)
    told = "kubectl -n gpu-share logs -l app.kubernetes.io/component=plugin --tail=-1"
    eventually(
        lambda: f"-> {number}" in last_change(installed.cluster.run(told)), what=f"the plugin divides by {number}"
    )
    eventually(
        lambda: all(of(place.create(pod("0.2", name="asked"), dry_run=True).body) == number for _ in range(8)),
        what=f"each webhook grants vGPUs of {number}",
    )


def last_change(log: str) -> str:
    changes = [line for line in log.splitlines() if "what is free is divided anew" in line]
    return str(json.loads(changes[-1])["changed"]) if changes else ""


def of(granted: Object) -> int:
    (container,) = json.loads(granted["metadata"]["annotations"]["gpu-share.dev/grant"])["containers"].values()
    return int(container["of"])


def request(one: Object) -> int:
    return sum(int(each["resources"]["requests"][VGPU]) for each in one["spec"]["containers"])


def held_parts(place: Place, names: Sequence[str]) -> dict[str, Fraction]:
    """Add up what containers were given of each GPU, as they see it."""
    parts: dict[str, Fraction] = {}
    for name in names:
        environment = place.report(name).environment
        uuid = environment["NVIDIA_VISIBLE_DEVICES"]
        parts[uuid] = parts.get(uuid, Fraction(0)) + Fraction(environment["GPU_SHARE_FRACTION"])
    return parts


def identity(one: Object) -> tuple[str, int]:
    (status,) = one["status"]["containerStatuses"]
    return status["containerID"], status["restartCount"]


def test_the_number_goes_up_and_down_under_load_and_no_pod_that_runs_notices(
    installed: Installation, place: Place
) -> None:
    plugins = [one["metadata"]["uid"] for one in installed.pods("plugin")]
    kept = {f"kept-{share}": share for share in ("0.1", "0.3", "0.4")}
    before = {name: identity(place.started(pod(share, name=name))) for name, share in kept.items()}
    reports = {name: place.report(name) for name in kept}
    try:
        with load(place) as running:
            for number in (20, 5, 10):
                divide_by(installed, place, number)
                here = running.created + 30
                eventually(lambda here=here: running.created > here, seconds=60, what="the load goes on")  # type: ignore[misc]
                now = [one["metadata"]["name"] for one in place.all() if one["status"]["phase"] == "Running"]
                for uuid, part in held_parts(place, now).items():
                    assert part <= 1, f"{uuid} was given away {part} times"
    finally:
        divide_by(installed, place, 10)
    print(f"{running.created} pods created, {len(running.failed)} failed for room")  # noqa: T201 - the measurement
    assert [one for one in running.failed if not any(words in one for words in _ROOM)] == []
    assert running.denied == []
    eventually(lambda: len(place.all()) == len(kept), what="the load has gone")
    assert {name: identity(place.get(name)) for name in kept} == before
    assert {name: place.report(name) for name in kept} == reports
    assert [one["metadata"]["uid"] for one in installed.pods("plugin")] == plugins
    requested = sum(request(one) for one in place.all())
    left = [int((1 - part) * 10 // 1) for part in held_parts(place, list(kept)).values()]
    left += [10] * (2 - len(left))
    (node,) = installed.nodes()

    def seen() -> int:
        return int(installed.allocatable(node)[VGPU]) - requested

    # The guard may hide some, never those of the GPU with most.
    eventually(lambda: max(left) <= seen() <= sum(left), what=f"of {left} vGPUs the scheduler sees those that fit")
