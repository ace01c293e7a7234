"""The image as a cluster runs it. `make image-test` builds it; `make test` skips it."""

import json
import os
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

import pytest

from certs.issuer import issue_to_directory
from plugin.simulated.device_manager import Request
from plugin.simulated.kubelet import SimulatedKubelet
from tests.image.container import Image
from tests.webhook.serving import Server, review_of, wait_for

ROOT = Path(__file__).parents[2]
VGPU = "gpu-share.dev/vgpu"
MEGABYTE = 1_000_000
BUILD_TOOLS = [
    "*gcc*",
    "cc",
    "[cg]++*",
    "cpp",
    "clang*",
    "ld",
    "make",
    "pip",
    "pip3*",
    "pipx",
    "uv",
    "easy_install*",
]
BUILD_MODULES = ["pip", "setuptools", "wheel", "pkg_resources", "ensurepip", "hatchling"]


def test_help_is_shown_on_stdout_only(image: Image) -> None:
    ran = image.run(*image.config["Entrypoint"], "--help")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("Usage: gpu-share ")


def test_the_webhook_answers_a_review_over_tls(image: Image, tmp_path: Path) -> None:
    with webhook(image, tmp_path) as server:
        with server.caller() as caller:
            assert caller.ask("GET", "/readyz")[0] == 200
            status, text = caller.ask("POST", "/mutate", review_of("0.2"))
        answer = json.loads(text)["response"]
        assert (status, answer["allowed"], answer["patchType"]) == (200, True, "JSONPatch")
        assert server.stop() == 0


def test_the_webhook_runs_unprivileged(image: Image, tmp_path: Path) -> None:
    with webhook(image, tmp_path) as server:
        for process in (server.process.pid, *server.workers):
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
            status = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
            assert status["Uid"] == status["Gid"] == [str(image.uid)] * 4
            assert status["CapEff"] == status["CapPrm"] == ["0" * 16]
            assert status["NoNewPrivs"] == ["1"]


def test_the_plugin_registers_and_allocates_a_share(image: Image, directory: Path) -> None:
    with SimulatedKubelet(directory) as kubelet:
        kubelet.socket.chmod(0o777)  # the real kubelet's socket belongs to root, and a real plugin runs as root
        writable = "/var/lib/kubelet/device-plugins"
        directories = ["--cdi-dir", f"{writable}/cdi", "--state-dir", f"{writable}/state"]
        arguments = ["plugin", "--simulate", "2xH200", *directories]
        plugin = image.start(*arguments, mounts={writable: directory}, stderr=subprocess.DEVNULL)
        try:
            assert kubelet.wait_for(VGPU, timeout_seconds=30) == 20
            received = kubelet.allocate(Request(pod="default/a", container="main", resource=VGPU, count=2))
            assert received.environment["GPU_SHARE_FRACTION"] == "0.2"
            plugin.terminate()
            assert plugin.wait(20) == 0
        finally:
            plugin.kill()
            plugin.wait()


def test_the_mps_command_starts_and_reports_a_missing_state_directory(image: Image) -> None:
    ran = image.run(*image.config["Entrypoint"], "mps")
    assert (ran.returncode, ran.stderr.count("\n")) == (1, 1)
    assert ran.stderr.startswith("gpu-share mps: --state-dir /run/gpu-share: ")


def test_the_certs_command_starts_and_reports_a_missing_cluster(image: Image) -> None:
    ran = image.run(*image.config["Entrypoint"], "certs", "ensure")
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr


def test_a_proxy_by_socks_can_be_used(image: Image) -> None:
    assert image.run("python3", "-c", "import urllib3.contrib.socks").returncode == 0


def test_nothing_can_be_written(image: Image) -> None:
    for path in ("/written", "/tmp/written", "/opt/gpu-share/written"):
        assert "Read-only file system" in image.run("touch", path).stderr


def test_nothing_would_be_writable_on_a_writable_root(image: Image) -> None:
    assert [path for path in files(image) if writable(image, path)] == []


def test_no_compiler_or_installer_is_in_it(image: Image) -> None:
    programs = [path for path in files(image) if path.parent.name in ("bin", "sbin")]
    assert len(programs) > 100
    assert [path for path in programs if any(fnmatch(path.name, tool) for tool in BUILD_TOOLS)] == []


@pytest.mark.parametrize("module", BUILD_MODULES)
@pytest.mark.parametrize("python", ["python3", "/usr/bin/python3"])
def test_no_python_in_it_can_install(image: Image, python: str, module: str) -> None:
    assert f"No module named {module}" in image.run(python, "-m", module).stderr
    assert [path for path in files(image) if fnmatch(path.name, f"{module}-*.whl")] == []


@pytest.mark.parametrize(
    "modules",
    [
        "gpu_share, webhook.server",
        "gpu_share, plugin.process",
        "gpu_share, plugin.mps_process",
        "gpu_share, plugin.health.status",
        "gpu_share, certs.ensure, kubernetes.client.api.core_v1_api",
    ],
)
def test_no_start_compiles_python(image: Image, modules: str) -> None:
    said = image.run("python3", "-v", "-c", f"import {modules}").stderr
    assert "code object from" in said
    assert [line for line in said.splitlines() if "code object from" in line and ".pyc" not in line] == []


def test_its_policies_examples_and_pages_are_those_of_the_repository(image: Image) -> None:
    (packages,) = image.root.glob("opt/gpu-share/lib/python3*/site-packages")
    for directory in ("policies/files", "policies/examples"):
        shipped = {path.name: path.read_bytes() for path in (packages / directory).iterdir()}
        assert shipped == {path.name: path.read_bytes() for path in (ROOT / directory).iterdir()}
    ran = image.run(*image.config["Entrypoint"], "policy", "check")
    assert ran.returncode == 0, ran.stderr
    for directory in ("console/page/templates", "console/page/static"):
        own = {path.relative_to(ROOT): path.read_bytes() for path in (ROOT / directory).rglob("*") if path.is_file()}
        assert own == {path: (packages / path).read_bytes() for path in own}
    assert not {"tests", "docs", "manifests"} & {path.name for path in packages.iterdir()}


def test_its_labels_name_title_and_version(image: Image) -> None:
    version = image.run(*image.config["Entrypoint"], "--version").stdout.split()[-1]
    labels = image.config["Labels"]
    assert labels["org.opencontainers.image.version"] == version
    assert labels["org.opencontainers.image.title"] == "gpu-share"


def test_it_stays_small(image: Image) -> None:
    ours = sum(path.lstat().st_size for path in files(image) if path.is_relative_to(image.root / "opt"))
    assert ours < 200 * MEGABYTE


@pytest.fixture
def directory() -> Iterator[Path]:
    """Yield a directory with a short path, as unix sockets need, that the image's user can write to."""
    with tempfile.TemporaryDirectory(prefix="gs-", dir="/tmp") as name:
        path = Path(name)
        path.chmod(0o777)
        yield path


@contextmanager
def webhook(image: Image, directory: Path) -> Iterator[Server]:
    """Start the image's webhook with a certificate for localhost and the shipped policies."""
    certificates = directory / "certificates"
    issue_to_directory(certificates, dns_names=["localhost"])
    for path in (certificates, *certificates.iterdir()):
        os.chown(path, image.uid, image.uid)
    arguments = ["webhook", "--bind", "127.0.0.1:0", "--workers", "2"]
    arguments += ["--cert", "/etc/gpu-share/tls/tls.crt", "--key", "/etc/gpu-share/tls/tls.key"]
    log = directory / "stderr"
    with log.open("wb") as stderr:
        process = image.start(*arguments, mounts={"/etc/gpu-share/tls": certificates}, stderr=stderr)
    server = Server(process, log=log, ca=certificates / "ca.crt")
    try:
        wait_for(lambda: process.poll() is not None or server.lines("serving"), seconds=30)
        assert process.poll() is None, log.read_text()
        wait_for(lambda: len(server.workers) == 2)
        server.port = int(server.lines("serving")[0]["address"].rpartition(":")[2])
        yield server
    finally:
        if process.poll() is None:
            server.interrupt()


def files(image: Image) -> Iterator[Path]:
    for directory, directories, names in os.walk(image.root):
        yield from (Path(directory, name) for name in directories + names)


def writable(image: Image, path: Path) -> bool:
    """Say whether the image's user may write to *path*; directories with the sticky bit do not count."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode) or stat.S_ISCHR(status.st_mode) or status.st_mode & stat.S_ISVTX:
        return False
    return bool(status.st_mode & stat.S_IWOTH) or status.st_uid == image.uid
