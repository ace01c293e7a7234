"""What the real webhook tells scrapers: all of its workers together, in the words of its policies alone."""

import json
import os
import shutil
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from prometheus_client.parser import text_string_to_metric_families

from certs.issuer import issue_to_directory
from tests.webhook.serving import Server, free_port, review_of, served_with, wait_for
from tests.webhook.volume import Volume

UP_TO_HALF = b'share: {maximum: "0.5"}\n'
Start = Callable[..., Server]


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU_SHARE_METRICS_BIND", "127.0.0.1:0")


def address(server: Server) -> str:
    return str(server.lines("metrics served")[0]["address"])


def samples(served: Server | str) -> dict[str, dict[tuple[str, ...], float]]:
    url = served if isinstance(served, str) else address(served)
    with urllib.request.urlopen(f"{url}/metrics", timeout=5) as answer:  # noqa: S310 - of this machine
        text = answer.read().decode()
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            found.setdefault(one.name, {})[tuple(value for _, value in sorted(one.labels.items()))] = one.value
    return found


def open_files(pid: int) -> set[str]:
    return {str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()}


def of_namespace(namespace: str, share: str = "0.2") -> bytes:
    review = json.loads(review_of(share))
    review["request"]["namespace"] = namespace
    return json.dumps(review).encode()


def test_several_workers_count_together_by_decision_code_and_policy(
    start: Start, policies: Path, certificates: Path
) -> None:
    server = start(policies, certificates, workers=2)
    with server.caller_of_each_worker() as callers:
        for number, caller in enumerate(callers, 1):
            for _ in range(number):
                assert caller.allowed(review_of())
            assert not caller.allowed(review_of("0.9"))
            assert caller.ask("POST", "/mutate", b"{")[0] == 400
    told = samples(server)
    assert told["gpu_share_reviews_total"] == {
        ("", "granted", "_default"): 3,
        ("ShareAboveMaximum", "denied", "_default"): 2,
        ("", "invalid", ""): 2,
    }
    buckets = told["gpu_share_review_duration_seconds_bucket"]
    assert [*buckets.values()] == sorted(buckets.values())
    assert buckets["+Inf",] == told["gpu_share_review_duration_seconds_count"][()] == 7
    assert 0 < told["gpu_share_review_duration_seconds_sum"][()] < 1


def test_what_a_worker_has_counted_outlives_it_and_the_next_one_goes_on(
    start: Start, policies: Path, certificates: Path
) -> None:
    server = start(policies, certificates, workers=2)
    for expected in range(2, 12, 2):
        before = server.workers
        with server.caller_of_each_worker() as callers:
            for caller in callers:
                assert caller.allowed(review_of())
        assert samples(server)["gpu_share_reviews_total"] == {("", "granted", "_default"): expected}
        os.kill(before[0], signal.SIGKILL)
        server.await_workers(2, without=before[:1])


def test_namespaces_that_have_no_policy_are_no_labels(start: Start, policies: Path, certificates: Path) -> None:
    server = start(policies, certificates)
    with server.caller() as caller:
        for number in range(300):
            caller.allowed(of_namespace(f"hostile-{number}"))
    assert samples(server)["gpu_share_reviews_total"] == {("", "granted", "_default"): 300}


def test_policies_are_counted_and_a_broken_file_is_named(start: Start, tmp_path: Path, certificates: Path) -> None:
    volume = Volume(tmp_path / "policies", {"_default.yaml": UP_TO_HALF, "team.yaml": UP_TO_HALF})
    server = start(volume.directory, certificates)
    told = samples(server)
    assert (told["gpu_share_policies"][()], told["gpu_share_policy_files_broken"][()]) == (2, 0)
    volume.swap({"_default.yaml": UP_TO_HALF, "team.yaml": b"share: {maximum: much}\n"})
    wait_for(lambda: samples(server)["gpu_share_policy_files_broken"][()] == 1)
    ((file,),) = samples(server)["gpu_share_policy_file_broken"]
    assert file.endswith("/team.yaml")


def test_the_certificate_that_is_served_says_when_it_expires_and_none_of_workers_that_were_replaced(
    start: Start, policies: Path, certificates: Path, tmp_path: Path
) -> None:
    served = tmp_path / "certificates"
    shutil.copytree(certificates, served)
    server = start(policies, served, workers=2)

    def is_told() -> bool:
        (certificate, *_) = x509.load_pem_x509_certificates((served / "tls.crt").read_bytes())
        expires = samples(server)["gpu_share_serving_certificate_expiry_timestamp_seconds"][()]
        return expires == certificate.not_valid_after_utc.timestamp()

    wait_for(is_told)
    before = server.workers
    server.process.send_signal(signal.SIGHUP)
    server.await_workers(2, without=before, seconds=20)
    time.sleep(1)  # certificates end at whole seconds
    issue_to_directory(served, dns_names=("localhost", "127.0.0.1"))
    wait_for(is_told)


def test_lines_of_the_log_that_cannot_be_written_are_counted(
    policies: Path, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setenv("GPU_SHARE_METRICS_BIND", f"127.0.0.1:{port}")
    stderr = os.open("/dev/full", os.O_WRONLY)
    with served_with(stderr, policies, certificates) as server:
        os.close(stderr)
        with server.caller() as caller:
            for _ in range(50):
                assert caller.allowed(review_of())
        wait_for(lambda: samples(f"http://127.0.0.1:{port}")["gpu_share_log_lines_lost_total"][()] >= 50)


def test_the_master_alone_answers_and_no_worker_keeps_its_socket(
    start: Start, policies: Path, certificates: Path
) -> None:
    server = start(policies, certificates, workers=2)
    port = int(address(server).rpartition(":")[2])
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    (inode,) = [row[9] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A"]
    for worker in server.workers:
        assert f"socket:[{inode}]" not in open_files(worker)
    assert f"socket:[{inode}]" in open_files(server.process.pid)


def test_reviews_are_not_answered_to_scrapers(start: Start, policies: Path, certificates: Path) -> None:
    server = start(policies, certificates)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{address(server)}/readyz", timeout=5)  # noqa: S310 - of this machine
