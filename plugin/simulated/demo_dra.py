"""The part of the demo in which the scheduler chooses the GPU: the real plugin, by Dynamic Resource Allocation."""

from pathlib import Path

from rich.console import Console

from plugin.simulated.api_server import Object, SimulatedApiServer, Store
from plugin.simulated.demo_processes import running, wait_for_line
from plugin.simulated.demo_view import show_waiting
from plugin.simulated.dra_kubelet import SimulatedDraKubelet
from plugin.simulated.scheduler import SimulatedScheduler
from policies.contract import DRIVER, SIZE_RESOURCE_PREFIX, VISIBLE_DEVICES

_NODE = "node"
_SHARES = (300, 700, 900)  # thousandths; one GPU is full then, the other nearly
_TOO_MUCH = 800


def let_the_scheduler_choose(directory: Path, policies: Path, *, simulate: str, console: Console) -> None:
    """
    Fill two GPUs by DRA, ask for more than either has left, and make room.

    Raises:
        DemoError: If the plugin does not start.
    """
    certs = directory / "certs"
    (certs / "token").touch()
    store = Store()
    store.put(f"/api/v1/nodes/{_NODE}", {"metadata": {"name": _NODE}})
    places = {"plugins-dir": "plugins", "registrar-dir": "registry"}
    options = [text for name, place in places.items() for text in (f"--kubelet-{name}", str(directory / place))]
    options += ["--kubelet-dir", str(directory / "kubelet"), "--state-dir", str(directory / "state-dra")]
    options += ["--cdi-dir", str(directory / "cdi-dra"), "--service-account", str(certs), "--node-name", _NODE]
    options += ["--policies", str(policies), "--simulate", simulate, "--allocation", "dra"]
    options += ["--pod-resources", str(directory / "pod-resources-dra.sock"), "--lib-dir", str(directory / "lib-dra")]
    with SimulatedApiServer(store, certificate=certs / "tls.crt", key=certs / "tls.key") as api:
        address = {"KUBERNETES_SERVICE_HOST": "localhost", "KUBERNETES_SERVICE_PORT": str(api.port)}
        log = directory / "plugin-dra.log"
        kubelet = SimulatedDraKubelet(directory / "registry", directory / "cdi-dra")
        with running(log, "plugin", *options, **address) as plugin, kubelet:
            kubelet.find(DRIVER)
            wait_for_line(plugin, log, "slices published")
            _fill(SimulatedScheduler(store), kubelet, console)


def _fill(scheduler: SimulatedScheduler, kubelet: SimulatedDraKubelet, console: Console) -> None:
    claims = {milli: _claim(scheduler, milli) for milli in _SHARES}
    placed = {milli: _gpu(kubelet, claim) for milli, claim in claims.items() if claim is not None}
    waits = _claim(scheduler, _TOO_MUCH) is None
    largest = claims[max(_SHARES)]
    if largest is not None:
        kubelet.unprepare(largest)
        scheduler.release(largest)
    after = _claim(scheduler, _TOO_MUCH)
    show_waiting(
        console,
        placed=placed,
        late=_TOO_MUCH,
        waits=waits,
        ended=max(_SHARES),
        gpu=_gpu(kubelet, after) if after is not None else "",
    )


def _claim(scheduler: SimulatedScheduler, milli: int) -> Object | None:
    return scheduler.schedule(f"pod-{milli}", {"main": f"{SIZE_RESOURCE_PREFIX}{milli}m"})


def _gpu(kubelet: SimulatedDraKubelet, claim: Object) -> str:
    ((_, devices),) = kubelet.prepare(claim).items()
    return kubelet.start_container(devices).environment[VISIBLE_DEVICES]
