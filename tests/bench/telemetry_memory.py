"""
What it takes in memory to be looked at: each part with and without what answers scrapers, in processes of their own.

`python -m tests.bench.telemetry_memory PART DIRECTORY` is one of these processes: it imports what the part consists of,
is scraped a few times if DIRECTORY, that of a node's state, is given, and prints the memory that it has to itself.
"""

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from program.http_server import Answer

_ROUNDS: Final = 3
_SCRAPES: Final = 20
_ALL_HAVE: Final = ("prometheus_client", "prometheus_client.core", "program.metrics", "program.http_server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A program, and which of its modules are there for scrapers alone."""

    consists_of: tuple[str, ...]
    for_scrapers: tuple[str, ...]
    answer: Callable[[Path], "Answer"]


class _Absent(ModuleType):
    """A module that takes nothing: whatever is imported from it is an empty class."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def measure(state_dir: Path) -> Iterator[str]:
    for name in PARTS:
        # The least of each: memory that an allocator has not given back counts as well.
        without = min(_memory_mib(name) for _ in range(_ROUNDS))
        more = min(_memory_mib(name, str(state_dir)) for _ in range(_ROUNDS)) - without
        yield f"{name}: {more:.1f} MiB more than {without:.1f} MiB by being scraped (goal 5)"


def _memory_mib(*arguments: str) -> float:
    command = [sys.executable, "-m", __name__, *arguments]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _of_node(part: str) -> Callable[[Path], "Answer"]:
    def answer(state_dir: Path) -> "Answer":
        from plugin.state_files import boot_id  # noqa: PLC0415 - only in the process that is measured
        from plugin.telemetry.node import node_state, read_facts  # noqa: PLC0415
        from plugin.telemetry.samples import mps_samples, plugin_samples  # noqa: PLC0415
        from program import metrics  # noqa: PLC0415

        samples = {"plugin": plugin_samples, "mps": mps_samples}[part]
        return metrics.answer(samples(node_state(read_facts(state_dir, boot_id=boot_id()), part=part, node="n")))

    return answer


def _of_webhook(_: Path) -> "Answer":
    from tests.bench.counted import counted, scraped  # noqa: PLC0415

    return scraped(counted(workers=2, policies=100))


def _of_certificates(_: Path) -> "Answer":
    from datetime import UTC, datetime  # noqa: PLC0415

    from certs.issuer import new_ca  # noqa: PLC0415
    from certs.metrics import LastPass  # noqa: PLC0415
    from certs.rotation import State  # noqa: PLC0415

    last, now = LastPass(), datetime.now(UTC)
    ca = new_ca(now=now)
    serving = {"tls.crt": ca.issue(["localhost"], now=now).certificate_pem}
    last.note(State(ca={"ca.crt": ca.pair.certificate_pem}, annotations={}, serving=serving, bundle=None), now)
    return last.answer()


PARTS: Final[Mapping[str, Part]] = {
    "plugin": Part(
        consists_of=("plugin.process", "plugin.dra.driver"),
        for_scrapers=("plugin.telemetry.server",),
        answer=_of_node("plugin"),
    ),
    "mps": Part(
        consists_of=("plugin.mps_process",),
        for_scrapers=("plugin.telemetry.server", "plugin.usage.measurement"),
        answer=_of_node("mps"),
    ),
    "webhook": Part(
        consists_of=("webhook.server",), for_scrapers=("webhook.metrics", "webhook.counters"), answer=_of_webhook
    ),
    "certs": Part(consists_of=("certs.ensure",), for_scrapers=("certs.metrics",), answer=_of_certificates),
}


def _private_mib() -> float:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean:", "Private_Dirty:"))) / 1024


def _scrape(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answer:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert answer.read().split()[1] == b"200"


def main(name: str, directory: str = "") -> None:
    part = PARTS[name]
    if not directory:
        sys.modules.update({absent: _Absent(absent) for absent in (*_ALL_HAVE, *part.for_scrapers)})
    for module in part.consists_of:
        import_module(module)
    if directory:
        from program.http_server import serve_beside  # noqa: PLC0415

        server = serve_beside(("127.0.0.1", 0), {"/metrics": lambda _: part.answer(Path(directory))}, what="metrics")
        assert server is not None
        for _ in range(_SCRAPES):
            _scrape(server.port)
    sys.stdout.write(f"{_private_mib()}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
