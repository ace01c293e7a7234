"""
The whole chain on one machine: the real webhook over TLS, the real plugin over its socket, a simulated kubelet.

Everything is a process or a file in a temporary directory, and is gone when the demo ends.
"""

import json
import ssl
import subprocess
import time
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import jsonpatch
from rich.console import Console

from plugin.errors import SocketError
from plugin.shares.last_parts import LastParts
from plugin.simulated.container_runtime import with_cdi_devices
from plugin.simulated.demo_dra import let_the_scheduler_choose
from plugin.simulated.demo_processes import START_SECONDS, DemoError, command_of, environment, running, wait_for_line
from plugin.simulated.demo_view import show_allocation, show_denial, show_end, show_fault, show_node, show_title
from plugin.simulated.device_manager import ContainerKind, Received, Request, UnexpectedAdmissionError
from plugin.simulated.kubelet import SimulatedKubelet
from plugin.sockets import check_length, socket_path
from policies.contract import DRIVER
from policies.reading.store import PolicyStore

SIMULATED = "2xH200"
# The same GPUs as a file, of which one fails.
_FAILING = """
gpus: [{model: H200, numaNode: 0}, {model: H200, numaNode: 1}]
faults: [{at: 0.5, gpu: 0, xid: 79}]
"""
_CDI_DIRECTORY = "cdi"
_UNHEALTHY = 1  # exit code of `gpu-share plugin status`


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A pod to send through the chain."""

    title: str
    namespace: str
    pod: dict[str, Any]  # as the API server would send it
    why: tuple[str, ...]  # the decision in sentences


def run(examples: Sequence[Example], *, policies: Path, console: Console) -> None:
    """
    Send *examples* through the chain and show what becomes of each.

    Raises:
        DemoError: If a part of the chain does not start, or its sockets cannot be where temporary files are.
    """
    cluster = PolicyStore(policies).current.cluster
    resource = cluster.resource_names["mps"]
    with TemporaryDirectory(prefix="gpu-share-") as name, ExitStack() as stack:
        directory = Path(name)
        _check_sockets(directory, resource)
        port = stack.enter_context(_webhook(directory, policies))
        (directory / "kubelet").mkdir()
        kubelet = SimulatedKubelet(
            directory / "kubelet",
            random=Random(4),  # noqa: S311 - a demo
            pod_resources=directory / "pod-resources.sock",
        )
        stack.enter_context(kubelet)
        with _plugin(directory, policies, simulate=SIMULATED):
            devices = _advertised(lambda: kubelet.allocatable(resource), kubelet, resource, directory)
            console.print(
                f"A webhook on https://localhost:{port}, a device plugin with [bold]{SIMULATED}[/bold] "
                f"({devices} vGPUs) and a kubelet, all on this machine and for this moment."
            )
            for number, example in enumerate(examples, start=1):
                show_title(console, number=number, title=example.title)
                _send(example, port=port, directory=directory, kubelet=kubelet, resource=resource, to=console)
        show_node(
            console,
            holders=kubelet.holders(resource),
            devices=[one.id for one in kubelet.devices(resource)],
            gpu_of=LastParts(directory / "state").bindings(),
        )
        _let_a_gpu_fail(directory, policies, kubelet=kubelet, resource=resource, console=console)
        let_the_scheduler_choose(directory, policies, simulate=SIMULATED, console=console)
    show_end(console)


def _check_sockets(directory: Path, resource: str) -> None:
    """See that the sockets with the longest paths can be in *directory*, before anything starts."""
    for path in (Path("kubelet", socket_path(Path(), resource)), Path("registry", f".{DRIVER}-reg.sock")):
        try:
            check_length(directory / path, fix="set TMPDIR to a directory with a shorter path, such as /tmp")
        except SocketError as error:
            raise DemoError(str(error)) from None


def _send(  # noqa: PLR0913 - the whole chain
    example: Example, *, port: int, directory: Path, kubelet: SimulatedKubelet, resource: str, to: Console
) -> None:
    """Send a pod through the webhook and, if it is granted, to the kubelet; show what becomes of it."""
    response = _call(port, directory / "certs" / "ca.crt", example)
    if not response["allowed"]:
        show_denial(to, status=response["status"], why=example.why)
        return
    patch = json.loads(b64decode(response["patch"])) if "patch" in response else []
    patched = jsonpatch.apply_patch(example.pod, patch)
    received = {
        name: got if isinstance(got, str) else with_cdi_devices(got, directory / _CDI_DIRECTORY)
        for name, got in _admit(kubelet, example.title, patched, resource).items()
    }
    show_allocation(to, before=example.pod, after=patched, why=example.why, received=received)


def _let_a_gpu_fail(
    directory: Path, policies: Path, *, kubelet: SimulatedKubelet, resource: str, console: Console
) -> None:
    """Start the plugin anew, with a script in which the first GPU fails, and show what the node then says."""
    script = directory / "failing.yaml"
    script.write_text(_FAILING, encoding="utf-8")
    vgpus = kubelet.capacity(resource)
    with _plugin(directory, policies, simulate=str(script)):
        left = _advertised(
            lambda: kubelet.allocatable(resource) if kubelet.allocatable(resource) < vgpus else 0,
            kubelet,
            resource,
            directory,
        )
        show_fault(console, left=left, vgpus=vgpus, status=_status(directory))


def _advertised(count: Callable[[], int], kubelet: SimulatedKubelet, resource: str, directory: Path) -> int:
    """Wait until *count* is not zero."""
    try:
        return kubelet.wait_until(count, timeout_seconds=START_SECONDS)
    except TimeoutError:
        last = next(reversed((directory / "plugin.log").read_text(errors="replace").splitlines()), "it logged nothing")
        raise DemoError(
            f"the plugin did not advertise {resource} within {START_SECONDS:.0f} s; the last line of its log: {last}"
        ) from None


def _status(directory: Path) -> str:
    """Ask the command how the GPUs are, until it has heard what the kubelet knows already."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        command = [*command_of("plugin", "status"), "--state-dir", str(directory / "state")]
        ran = subprocess.run(  # noqa: S603 - our own command
            command, capture_output=True, text=True, check=False, env=environment()
        )
        if ran.returncode == _UNHEALTHY:
            return ran.stdout
        if time.monotonic() > deadline:
            raise DemoError(f"gpu-share plugin status does not show the fault: {ran.stdout}{ran.stderr}".strip())


def _admit(kubelet: SimulatedKubelet, title: str, pod: dict[str, Any], resource: str) -> dict[str, Received | str]:
    """Let the kubelet admit a pod; by container, what it receives, or the pod's failure."""
    spec = pod["spec"]
    containers = [("init", one) for one in spec.get("initContainers", ())]
    containers += [("app", one) for one in spec["containers"]]
    received: dict[str, Received | str] = {}
    for group, container in containers:
        count = int(container.get("resources", {}).get("limits", {}).get(resource, 0))
        if not count:
            continue
        kind: ContainerKind = "app" if group == "app" else "init"
        if container.get("restartPolicy") == "Always":
            kind = "sidecar"
        request = Request(pod=title, container=container["name"], resource=resource, count=count, kind=kind)
        try:
            received[container["name"]] = kubelet.allocate(request)
        except UnexpectedAdmissionError as error:
            received[container["name"]] = str(error)
    return received


def _call(port: int, ca: Path, example: Example) -> dict[str, Any]:
    """Send an AdmissionReview as the API server does."""
    request = {
        "uid": f"demo-{abs(hash(example.title))}",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "namespace": example.namespace,
        "operation": "CREATE",
        "object": example.pod,
    }
    body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    context = ssl.create_default_context(cafile=str(ca))
    connection = HTTPSConnection("localhost", port, context=context, timeout=10)
    try:
        connection.request("POST", "/mutate?timeout=3s", body, {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    response: dict[str, Any] = answer["response"]
    return response


@contextmanager
def _webhook(directory: Path, policies: Path) -> Iterator[int]:
    """Issue certificates and start the webhook; yields its port."""
    certs = directory / "certs"
    command = [*command_of("certs", "issue"), "--out", str(certs)]
    subprocess.run(command, check=True, env=environment())  # noqa: S603 - our own command
    options = ["--policies", str(policies), "--cert", str(certs / "tls.crt"), "--key", str(certs / "tls.key")]
    with running(directory / "webhook.log", "webhook", *options, "--bind", "localhost:0") as process:
        line = wait_for_line(process, directory / "webhook.log", "serving")
        yield int(line["address"].rpartition(":")[2])


@contextmanager
def _plugin(directory: Path, policies: Path, *, simulate: str) -> Iterator[None]:
    options = ["--policies", str(policies), "--simulate", simulate, "--kubelet-dir", str(directory / "kubelet")]
    options += ["--state-dir", str(directory / "state"), "--cdi-dir", str(directory / _CDI_DIRECTORY)]
    options += ["--pod-resources", str(directory / "pod-resources.sock"), "--lib-dir", str(directory / "lib")]
    options += ["--fit-guard", "off"]  # there is no scheduler that could send too much
    with running(directory / "plugin.log", "plugin", *options):
        yield
