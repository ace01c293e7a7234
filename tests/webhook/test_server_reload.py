import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.webhook.load import Load
from tests.webhook.served_pairs import ready
from tests.webhook.serving import Caller, Server, review_of, wait_for
from tests.webhook.volume import Volume

UP_TO_HALF = {"_default.yaml": b'share: {maximum: "0.5"}\n'}
UP_TO_ONE = {"_default.yaml": b'share: {maximum: "1"}\n'}
BROKEN = {"_default.yaml": b'share: {maximum: "much"}\n'}

Start = Callable[..., Server]


def all_answer(callers: list[Caller], review: bytes, *, allowed: bool) -> bool:
    return all(caller.allowed(review) == allowed for caller in callers)


def test_swapped_policies_are_in_force_in_every_worker_within_two_seconds_and_no_call_fails(
    tmp_path: Path, certificates: Path, start: Start
) -> None:
    volume = Volume(tmp_path / "policies", UP_TO_HALF)
    server = start(volume.directory, certificates, workers=2)
    review = review_of("0.7")

    def call() -> None:
        with server.caller() as caller:
            caller.allowed(review)

    with server.caller_of_each_worker() as callers, Load(call, threads=2) as load:
        assert len(callers) == 2
        assert all_answer(callers, review, allowed=False)
        for policies, allowed in ((UP_TO_ONE, True), (UP_TO_HALF, False), (UP_TO_ONE, True)):
            volume.swap(policies)
            wait_for(partial(all_answer, callers, review, allowed=allowed), seconds=2)
    assert load.failures == []
    assert len(load.seconds) > 20
    wait_for(lambda: len(server.lines("new policies in force")) == 3 * 2)


def test_broken_policies_leave_the_older_ones_in_force_and_readiness_says_so(
    tmp_path: Path, certificates: Path, start: Start
) -> None:
    volume = Volume(tmp_path / "policies", UP_TO_HALF)
    server = start(volume.directory, certificates)
    with server.caller() as caller:
        volume.swap(BROKEN)
        wait_for(lambda: "the last good one stays in force" in ready(server), seconds=2)
        assert "_default.yaml:1" in ready(server)
        assert caller.allowed(review_of("0.5"))
        assert not caller.allowed(review_of("0.7"))
        volume.swap({"_default.yaml": BROKEN["_default.yaml"] + b"# the same fault again\n"})
        volume.swap(UP_TO_ONE)
        wait_for(lambda: caller.allowed(review_of("0.7")), seconds=2)
    assert ready(server) == "ready\n"
    (told,) = server.all_lines("policy file broken")
    assert (told["level"], told["file"], told["line"], told["field"]) == (
        "error",
        f"{volume.directory}/_default.yaml",
        1,
        "share.maximum",
    )
    assert (told["policy"], told["effect"]) == ("_default", "the last good one stays in force")
    assert told["problem"].startswith("it has ") or "share" in told["problem"]


def test_a_worker_that_replaces_a_killed_one_begins_with_the_newest_policies(
    tmp_path: Path, certificates: Path, start: Start
) -> None:
    volume = Volume(tmp_path / "policies", UP_TO_HALF)
    server = start(volume.directory, certificates)
    volume.swap(UP_TO_ONE)
    wait_for(lambda: server.lines("new policies in force"), seconds=2)
    os.kill(server.workers[0], signal.SIGKILL)
    with server.caller() as caller:
        assert caller.allowed(review_of("0.7"))
