"""The real webhook with broken policy files: what they cost, and whom."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.webhook.serving import Caller, Server, review_of, wait_for
from tests.webhook.volume import Volume

UP_TO_HALF = b'share: {maximum: "0.5"}\n'
UP_TO_ONE = b'share: {maximum: "1"}\n'
BROKEN = b'mode: enforce\nshare:\n  maximum: "much"\n'

Start = Callable[..., Server]


def answer(caller: Caller, namespace: str, share: str = "0.7") -> dict[str, Any]:
    review = json.loads(review_of(share))
    review["request"]["namespace"] = namespace
    status, text = caller.ask("POST", "/mutate", json.dumps(review).encode())
    assert status == 200
    response: dict[str, Any] = json.loads(text)["response"]
    return response


def allowed(caller: Caller, namespace: str, share: str = "0.7") -> bool:
    return bool(answer(caller, namespace, share)["allowed"])


def ready(caller: Caller) -> list[str]:
    status, text = caller.ask("GET", "/readyz")
    assert status == 200
    return text.splitlines()


def assert_broken_at_the_start(readiness: list[str], logged: list[dict[str, Any]]) -> None:
    """What /readyz and the log say of the files that are broken at the start."""
    head, *troubles = readiness
    assert head == "ready"
    assert [line.split(": ")[1].rpartition("/")[2] for line in troubles] == [
        "No_Namespace.yaml",
        "below.yaml:1",
        "latin.yaml:1",
        "short.yml",
        "team.yaml:3",
        "team.yaml:4",
    ]
    assert not [line for line in troubles if "share." in line or "much" in line]
    assert all(line.split(": ")[2].startswith("the log says why; ") for line in troubles)
    assert [(Path(one["file"]).name, one["line"], one["field"], one["level"]) for one in logged] == [
        ("No_Namespace.yaml", 0, "", "warning"),
        ("below.yaml", 1, "share.minimum", "error"),
        ("latin.yaml", 1, "", "error"),
        ("short.yml", 0, "", "error"),
        ("team.yaml", 3, "share.maximum", "error"),
        ("team.yaml", 4, "share.minimum", "error"),
    ]
    assert all(one["problem"] and one["effect"] for one in logged)


def test_a_broken_file_at_the_start_costs_its_namespace_alone_until_it_is_mended(
    tmp_path: Path, certificates: Path, start: Start
) -> None:
    files = {
        "_default.yaml": UP_TO_HALF,
        "team.yaml": BROKEN + b"  minimum: 1\n",
        "below.yaml": b'share: {minimum: "0.6"}\n',
        "large.yaml": UP_TO_ONE,
        "latin.yaml": b"# \xe9\n",
        "short.yml": UP_TO_ONE,
        "No_Namespace.yaml": UP_TO_ONE,
    }
    volume = Volume(tmp_path / "policies", files)
    server = start(volume.directory, certificates)
    with server.caller() as caller:
        denied = answer(caller, "team")
        assert (denied["allowed"], denied["status"]["code"], denied["status"]["reason"]) == (False, 403, "PolicyBroken")
        assert "(team.yaml:3)" in denied["status"]["message"]
        assert "share.maximum" in denied["status"]["message"]
        for namespace in ("below", "latin", "short"):
            assert answer(caller, namespace)["status"]["reason"] == "PolicyBroken"
        assert (allowed(caller, "large"), allowed(caller, "other", "0.5"), allowed(caller, "other")) == (
            True,
            True,
            False,
        )
        assert_broken_at_the_start(ready(caller), server.all_lines("policy file broken"))
        volume.swap({"_default.yaml": UP_TO_HALF, "team.yaml": UP_TO_ONE})
        wait_for(lambda: allowed(caller, "team"), seconds=3)
        assert ready(caller) == ["ready"]
    (reviewed, *_) = server.all_lines("review")
    assert (reviewed["decision"], reviewed["code"], reviewed["policy"]) == ("denied", "PolicyBroken", "team")


def test_a_file_that_breaks_later_leaves_its_namespace_the_last_good_policy_and_the_others_go_on(
    tmp_path: Path, certificates: Path, start: Start
) -> None:
    volume = Volume(tmp_path / "policies", {"_default.yaml": UP_TO_HALF, "team.yaml": UP_TO_ONE})
    server = start(volume.directory, certificates)
    with server.caller() as caller:
        assert (allowed(caller, "team"), allowed(caller, "other")) == (True, False)
        volume.swap({"_default.yaml": UP_TO_HALF, "team.yaml": BROKEN, "other.yaml": UP_TO_ONE})
        wait_for(lambda: allowed(caller, "other"), seconds=3)
        assert allowed(caller, "team")
        (told,) = server.all_lines("policy file broken")
        assert (told["policy"], told["effect"]) == ("team", "the last good one stays in force")
        assert told["effect"] in ready(caller)[1]
        volume.swap({"_default.yaml": BROKEN, "_cluster.yaml": b"vgpus: 1\n", "team.yaml": UP_TO_HALF})
        wait_for(lambda: not allowed(caller, "team"), seconds=3)
        assert (allowed(caller, "team", "0.5"), allowed(caller, "other", "0.5"), allowed(caller, "other")) == (
            True,
            True,
            False,
        )
        assert len(ready(caller)) == 3


def test_a_worker_that_replaces_a_killed_one_knows_the_last_good_policies(
    tmp_path: Path, certificates: Path, start: Start
) -> None:
    volume = Volume(tmp_path / "policies", {"team.yaml": UP_TO_ONE})
    server = start(volume.directory, certificates)
    with server.caller() as caller:
        for content in (UP_TO_HALF, BROKEN):
            volume.swap({"team.yaml": content})
            wait_for(lambda: not allowed(caller, "team"), seconds=3)
            time.sleep(2.5)  # nothing tells when the master has looked, which it does every second
    os.kill(server.workers[0], signal.SIGKILL)
    with server.caller() as caller:
        assert (allowed(caller, "team", "0.5"), allowed(caller, "team")) == (True, False)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("_default.yaml", BROKEN, "_default.yaml:3: share.maximum: "),
        ("_default.yaml", b'share: {minimum: "0.5", maximum: "0.1"}', "_default.yaml:1: share.minimum: 0.5 is above"),
        ("_default.yml", UP_TO_ONE, "_default.yml: expected _cluster.yaml, _default.yaml or"),
        ("_cluster.yaml", b"\nvgpusPerGpu: 0", "_cluster.yaml:2: vgpusPerGpu: "),
    ],
)
def test_what_every_namespace_needs_is_one_line_at_the_start(
    tmp_path: Path, certificates: Path, name: str, content: bytes, problem: str
) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "a-team.yaml").write_bytes(BROKEN)
    command = [sys.executable, "-m", "gpu_share", "webhook", "--bind", "127.0.0.1:0", "--policies", str(tmp_path)]
    command += ["--cert", str(certificates / "tls.crt"), "--key", str(certificates / "tls.key")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"gpu-share webhook: --policies: {tmp_path}/{problem}")
    assert ended.stderr.count("\n") == 1


def test_a_twin_of_the_file_of_all_is_told_and_neither_stops_a_start_nor_freezes_the_good_one(
    tmp_path: Path, certificates: Path, start: Start
) -> None:
    files = {"_default.yaml": UP_TO_HALF, "_cluster.yaml": b"", "_cluster.yml": b"", "_default.YAML": b""}
    volume = Volume(tmp_path / "policies", files)
    server = start(volume.directory, certificates)
    with server.caller() as caller:
        assert (allowed(caller, "team", "0.5"), allowed(caller, "team")) == (True, False)
        volume.swap(files | {"_cluster.yaml": b"exemptNamespaces: [team]\n"})
        wait_for(lambda: allowed(caller, "team"), seconds=2)
        volume.swap(files | {"_default.yaml": UP_TO_ONE})
        wait_for(lambda: allowed(caller, "other"), seconds=2)
        assert [line.rpartition("; ")[2] for line in ready(caller)[1:]] == ["no policy is affected"] * 2
    told = server.all_lines("policy file broken")
    assert [(Path(one["file"]).name, one["level"]) for one in told] == [
        ("_cluster.yml", "warning"),
        ("_default.YAML", "warning"),
    ]
