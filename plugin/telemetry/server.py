"""
What a node part answers over HTTP: /metrics for Prometheus, and /state for who looks at the node.

Two addresses, since network policies tell callers apart by port alone: scrapers by the labels of their namespace, and
API servers, through whose proxy people come, by nothing. Whoever asks for /state gives the UID of the pod that answers:
only those know it who may read the pods of our namespace, and the API server asks for no more to use its proxy.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from hmac import compare_digest
from http import HTTPStatus
from pathlib import Path
from typing import Final

from plugin.state_files import boot_id
from plugin.telemetry.node import node_state, read_facts
from plugin.telemetry.samples import mps_samples, plugin_samples
from policies import node_state as schema
from policies.node_state import NodeState
from program import metrics
from program.http_server import Answer, HttpServer, KeptAnswer, serve_beside
from program.metrics import Sample

_SAMPLES: dict[str, Callable[[NodeState], Iterable[Sample]]] = {"plugin": plugin_samples, "mps": mps_samples}


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """The options of a node part that concern who looks at it."""

    metrics_bind: tuple[str, int] | None = None  # address of /metrics; None serves none
    state_bind: tuple[str, int] | None = None  # address of /state; None serves none
    # Of the pod that answers; empty outside Kubernetes, where everybody who connects may see the state.
    pod_uid: str = ""


NOBODY_LOOKS: Final = TelemetrySettings()


def serve(settings: TelemetrySettings, *, part: str, node: str, state_dir: Path) -> list[HttpServer]:
    """Answer from now on what the files in *state_dir* say, in threads that end with the process."""
    now = partial(_now, part, node, state_dir, boot_id())
    samples = KeptAnswer(lambda: metrics.answer(_SAMPLES[part](now())))
    state = KeptAnswer(lambda: Answer(schema.write(now()), "application/json"))
    servers = (
        serve_beside(settings.metrics_bind, {"/metrics": lambda _query: samples()}, what="metrics"),
        serve_beside(
            settings.state_bind, {"/state": lambda query: _state(query, settings.pod_uid, state)}, what="state"
        ),
    )
    return [server for server in servers if server is not None]


def _now(part: str, node: str, state_dir: Path, boot: str) -> NodeState:
    return node_state(read_facts(state_dir, boot_id=boot), part=part, node=node)


def _state(query: str, pod_uid: str, state: Callable[[], Answer]) -> Answer:
    if pod_uid and not compare_digest(query.encode(errors="replace"), f"pod={pod_uid}".encode()):
        body = b"expected ?pod= with metadata.uid of this pod, which `kubectl get pod -o yaml` shows\n"
        return Answer(body, status=HTTPStatus.FORBIDDEN)
    return state()
