"""What `gpu-share doctor` says of a part that ends again and again, and runs at the moment it looks."""

from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from tests.console.objects import ago
from tests.console.stand_in import Object, StandIn
from tests.console.test_doctor import installed

Asked = Callable[..., Result]
_PARTS = [("mps", "parts-run"), ("plugin", "parts-run"), ("webhook", "webhook-runs"), ("certs", "renewal")]


def status(known: StandIn, component: str) -> Object:
    """The status of the only container of a part."""
    name = f"gpu-share-{component}-gpu-a"
    pods = known.lists["/api/v1/namespaces/gpu-share/pods"]
    (pod,) = (one for one in pods if one["metadata"]["name"] == name)
    of_container: Object = pod["status"]["containerStatuses"][0]
    return of_container


def restarted(component: str = "mps", *, times: int = 57, **last: Any) -> StandIn:
    """A cluster in which a part runs again for some seconds; *last* is what its kubelet says of the end before."""
    known = installed()
    end = {"reason": "OOMKilled", "exitCode": 137, "startedAt": ago(minutes=5), "finishedAt": ago(seconds=30), **last}
    status(known, component).update(
        restartCount=times, lastState={"terminated": end}, state={"running": {"startedAt": ago(seconds=20)}}
    )
    return known


def judged(shown: Callable[..., Any], known: StandIn, check: str = "parts-run") -> Object:
    found: Object = next(one for one in shown(known, "doctor") if one["check"] == check)
    return found


@pytest.mark.parametrize(("component", "check"), _PARTS)
def test_a_part_that_ends_again_and_again_is_told_with_the_reason_and_where_its_log_is(
    shown: Callable[..., Any], component: str, check: str
) -> None:
    found = judged(shown, restarted(component), check)
    assert found["status"] == "warning"
    name = f"gpu-share-{component}-gpu-a"
    (told,) = found["found"]
    assert told.startswith(
        f"container {component} of {name} on gpu-a was restarted 57 times, and ended last 3"  # 30 s, and what passed
    )
    assert told.endswith(" s ago: exit code 137, OOMKilled")
    assert f"kubectl -n gpu-share logs {name} -c {component} --previous" in found["hint"]


def test_it_is_no_failure_of_the_command(asked: Asked) -> None:
    ran = asked(restarted(), "doctor")
    assert (ran.exit_code, "! plugin and MPS run on the nodes\n" in ran.stdout) == (0, True)


@pytest.mark.parametrize(
    ("times", "last"),
    [
        pytest.param(57, lambda: {"startedAt": ago(days=22), "finishedAt": ago(days=21)}, id="weeks ago"),
        pytest.param(1, dict, id="once"),
        pytest.param(2, dict, id="twice, by restarts of the node"),
        pytest.param(
            9, lambda: {"reason": "Unknown", "exitCode": 255, "startedAt": ago(days=9)}, id="after days: the node"
        ),
        pytest.param(57, lambda: {"reason": "Completed", "exitCode": 0}, id="on purpose"),
        pytest.param(57, lambda: {"finishedAt": None}, id="nobody knows when"),
    ],
)
def test_other_restarts_are_no_fault(shown: Callable[..., Any], times: int, last: Callable[[], Object]) -> None:
    assert judged(shown, restarted(times=times, **last()))["status"] == "ok"


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(lambda: {"startedAt": None}, id="nobody knows how long it ran"),
        pytest.param(
            lambda: {"startedAt": ago(minutes=-20), "finishedAt": ago(minutes=-30)}, id="the node's clock is ahead"
        ),
        pytest.param(lambda: {"reason": "Error", "exitCode": 1, "finishedAt": ago(minutes=59)}, id="an hour ago"),
        pytest.param(lambda: {"startedAt": ago(hours=3)}, id="every three hours"),
    ],
)
def test_what_is_known_in_part_is_told_as_well(shown: Callable[..., Any], last: Callable[[], Object]) -> None:
    assert judged(shown, restarted(times=3, **last()))["status"] == "warning"


def test_a_sidecar_that_ends_again_and_again_is_named(shown: Callable[..., Any]) -> None:
    known = restarted()
    pods = known.lists["/api/v1/namespaces/gpu-share/pods"]
    (pod,) = (one for one in pods if "-mps-" in one["metadata"]["name"])
    of_container = status(known, "mps")
    pod["status"]["initContainerStatuses"] = [{**of_container, "name": "proxy"}]
    of_container.update(restartCount=0, lastState={})
    (told,) = judged(shown, known)["found"]
    assert told.startswith("container proxy of gpu-share-mps-gpu-a on gpu-a was restarted 57 times")


def test_a_first_container_that_failed_until_it_was_done_is_no_fault(shown: Callable[..., Any]) -> None:
    known = restarted()
    pods = known.lists["/api/v1/namespaces/gpu-share/pods"]
    (pod,) = (one for one in pods if "-mps-" in one["metadata"]["name"])
    of_container = status(known, "mps")
    done = {"terminated": {"reason": "Completed", "exitCode": 0, "finishedAt": ago(seconds=20)}}
    pod["status"]["initContainerStatuses"] = [{**of_container, "name": "first", "state": done}]
    of_container.update(restartCount=0, lastState={})
    assert judged(shown, known)["status"] == "ok"


def test_of_one_that_waits_to_be_started_again_both_is_told(shown: Callable[..., Any]) -> None:
    known = restarted()
    status(known, "mps").update(ready=False, state={"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}})
    found = judged(shown, known)
    assert found["status"] == "failure"
    assert found["found"][0] == "gpu-share-mps-gpu-a on gpu-a is not ready: CrashLoopBackOff: back-off"
    assert found["found"][1].startswith("container mps of gpu-share-mps-gpu-a on gpu-a was restarted 57 times")
    assert found["hint"].startswith("kubectl -n gpu-share describe daemonsets,pods")
    assert "logs gpu-share-mps-gpu-a -c mps --previous" in found["hint"]
