"""`gpu-share certs ensure` as a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from policies.contract import SERVING_SECRET, WEBHOOK_CONFIGURATION
from tests.certs.api_transports import over_http
from tests.certs.simulated_api_server import SimulatedApiServer
from tests.certs.simulated_cluster import configuration
from tests.plugin.waiting import wait_until
from tests.programs import ended
from tests.serving import serving

SHORT = """
import sys
from functools import partial
from certs import ensure
ensure.watched = partial(ensure.watched, longest_seconds=1)
sys.exit(ensure.run(namespace="a", service="web", settle_minutes=1))
"""


def ensure(*options: str, kubeconfig: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpu_share", "certs", "ensure", *options]
    environment = os.environ | {"KUBECONFIG": str(kubeconfig)} | variables
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def kubeconfig(directory: Path, url: str) -> Path:
    named: dict[str, Any] = {"name": "a"}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "a",
        "clusters": [named | {"cluster": {"server": url}}],
        "contexts": [named | {"context": {"cluster": "a", "user": "a"}}],
        "users": [named | {"user": {"token": "secret"}}],
    }
    path = directory / "kubeconfig"
    path.write_text(json.dumps(content))
    return path


def test_a_pass_exits_with_0_and_logs_each_reason_as_a_line_of_json(tmp_path: Path) -> None:
    server = SimulatedApiServer(namespace="other")
    server.put(WEBHOOK_CONFIGURATION, configuration())
    with over_http(server) as url:
        done = ensure("--service", "web", kubeconfig=kubeconfig(tmp_path, url), GPU_SHARE_NAMESPACE="other")
    assert (done.returncode, done.stdout) == (0, "")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["message"] for line in lines] == ["written"] * 5 + ["nothing to write"]
    assert lines[0].keys() == {"time", "level", "message", "what", "reason"}
    assert lines[0]["reason"] == "there is no CA"
    assert SERVING_SECRET in server.objects


def test_a_process_that_stays_tells_scrapers_when_certificates_expire_and_still_ends_when_it_is_told_to(
    tmp_path: Path,
) -> None:
    server = SimulatedApiServer()
    server.put(WEBHOOK_CONFIGURATION, configuration())
    command = [sys.executable, "-m", "gpu_share", "certs", "ensure", "--every-minutes", "60"]
    with over_http(server) as url:
        environment = os.environ | {"KUBECONFIG": str(kubeconfig(tmp_path, url))}
        command += ["--metrics-bind", "127.0.0.1:0"]
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        assert process.stderr
        with process.stderr:
            try:
                served = json.loads(process.stderr.readline())
                assert served["message"] == "metrics served"
                wait_until(lambda: "last_pass" in scraped(served["address"]), timeout_seconds=60)
                told = scraped(served["address"])
                process.send_signal(signal.SIGTERM)
                assert process.wait(10) == 0
            finally:
                process.kill()
                process.wait()
    secret = server.objects[SERVING_SECRET]["data"]["tls.crt"]
    (certificate, *_) = x509.load_pem_x509_certificates(b64decode(secret))
    name = "gpu_share_certificate_expiry_timestamp_seconds"
    values = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in told.splitlines() if line[0] != "#"}
    assert values[f'{name}{{certificate="serving"}}'] == certificate.not_valid_after_utc.timestamp()
    assert values[f'{name}{{certificate="ca"}}'] > time.time()
    assert values["gpu_share_certificates_last_pass_timestamp_seconds"] == pytest.approx(time.time(), abs=60)


def scraped(address: str) -> str:
    with urllib.request.urlopen(f"{address}/metrics", timeout=5) as answer:  # noqa: S310 - of this machine
        text: str = answer.read().decode()
    return text


def test_a_process_that_stays_makes_a_pass_at_once_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    server = SimulatedApiServer()
    server.put(WEBHOOK_CONFIGURATION, configuration())
    command = [sys.executable, "-m", "gpu_share", "certs", "ensure", "--every-minutes", "60"]
    with over_http(server) as url:
        environment = os.environ | {"KUBECONFIG": str(kubeconfig(tmp_path, url))}
        with ended(subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)) as process:
            assert process.stderr
            said: list[str] = []
            while not said or json.loads(said[-1])["message"] != "nothing to write":
                said.append(process.stderr.readline())
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=10) == 0
            assert process.stderr.read() == ""
    assert SERVING_SECRET in server.objects


def test_a_process_that_stays_ends_with_the_first_pass_that_fails(tmp_path: Path) -> None:
    with over_http(SimulatedApiServer(permissions=set())) as url:
        done = ensure("--every-minutes", "60", kubeconfig=kubeconfig(tmp_path, url))
    assert done.returncode == 1
    assert done.stderr.startswith("gpu-share certs ensure: cannot get mutatingwebhookconfigurations gpu-share: ")


def test_a_missing_permission_exits_with_1_and_one_line(tmp_path: Path) -> None:
    with over_http(SimulatedApiServer(permissions=set())) as url:
        done = ensure(kubeconfig=kubeconfig(tmp_path, url))
    assert done.returncode == 1
    assert done.stderr.startswith("gpu-share certs ensure: cannot get mutatingwebhookconfigurations gpu-share: ")
    assert done.stderr.count("\n") == 1


def test_an_answer_that_says_to_wait_for_long_ends_a_pass_at_once_and_is_named(tmp_path: Path) -> None:
    class Busy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(503)
            self.send_header("Retry-After", "1000")
            self.send_header("Content-Length", "0")
            self.end_headers()

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Busy)) as port:
        began = time.monotonic()
        done = ensure(kubeconfig=kubeconfig(tmp_path, f"http://127.0.0.1:{port}"))
    assert time.monotonic() - began < 20
    assert done.returncode == 1
    assert "cannot get mutatingwebhookconfigurations gpu-share: 503 Service Unavailable: " in done.stderr


def test_one_pass_ends_as_well_if_an_answer_never_does(tmp_path: Path) -> None:
    class Dripping(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            for _ in range(100):
                self.wfile.write(b" ")
                time.sleep(0.2)

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Dripping)) as port:
        environment = os.environ | {"KUBECONFIG": str(kubeconfig(tmp_path, f"http://127.0.0.1:{port}"))}
        command = [sys.executable, "-c", SHORT]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60)
    assert done.returncode == 1
    assert done.stderr.endswith("the pass has not ended for 1 s: is the API server slow or overloaded?\n")


@pytest.mark.parametrize("content", [None, "[1]"])
def test_no_cluster_exits_with_2_and_one_line(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    done = ensure(kubeconfig=path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("gpu-share certs ensure: no cluster: run in a pod, or set KUBECONFIG: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"contexts": [{"name": "a", "context": "a"}]}, "The kubeconfig is not valid: compare it with kubectl config"),
        ({"clusters": [{"name": "a", "cluster": {"server": 5}}]}, "The kubeconfig is not valid"),
        ({"users": [{"name": "a", "user": {"auth-provider": {"name": "gcp"}}}]}, "the user signs in by auth-provider"),
        ({"users": [{"name": "a", "user": {"token": 5}}]}, "The kubeconfig is not valid"),
        (
            {"clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1", "proxy-url": "ftp://x"}}]},
            "the proxy is invalid: expected an address such as http://proxy.example:3128",
        ),
        ({"clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1", "proxy-url": 5}}]}, "the proxy is"),
    ],
)
def test_an_invalid_kubeconfig_exits_with_2_and_one_line(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = kubeconfig(tmp_path, "https://127.0.0.1:1")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    done = ensure(kubeconfig=path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("gpu-share certs ensure: no cluster: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_proxy_needs_no_scheme(tmp_path: Path) -> None:
    with over_http(SimulatedApiServer()) as url:  # which knows no path that begins with http://
        path = kubeconfig(tmp_path, "http://elsewhere.example")
        done = ensure(kubeconfig=path, HTTP_PROXY=url.removeprefix("http://"), NO_PROXY="")
    assert "the server could not find the requested resource" in done.stderr


def test_an_invalid_namespace_exits_with_2_before_any_request(tmp_path: Path) -> None:
    server = SimulatedApiServer()
    with over_http(server) as url:
        done = ensure("--namespace", "a b", kubeconfig=kubeconfig(tmp_path, url))
    assert done.returncode == 2, done.stderr
    assert server.calls == []
