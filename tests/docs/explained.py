"""What `gpu-share explain` says of pods that wait, run, failed or are denied, in the documents."""

from datetime import UTC, datetime

import msgspec

from console.explain.sentences import explanations
from console.explain.subject import Answer, Subject
from console.look import seen_pod
from console.objects import Node, Pod
from console.seen import Seen
from console.seen_nodes import seen_nodes
from console.words import as_shown
from policies import pod as rules
from policies.decision import decide
from policies.node_state import ApplicationFault, NodeState, Tenant, Use
from policies.reading.store import load
from tests.console.objects import GIB, failed_gpu, gpu, node, pending, pod, state, tenant
from tests.console.stand_in import Object
from tests.docs.pages import ROOT
from tests.docs.shown import denial

_POLICIES = load(ROOT / "policies" / "files")


def waiting() -> str:
    return _block("late", _waiting())


def why_it_waits() -> str:
    return _block("late", _waiting(), "State")


def _waiting() -> Answer:
    waits = "0/1 nodes are available: 1 Insufficient gpu-share.dev/vgpu."
    said = state(gpu(tenant("resnet-0", 7)), gpu(tenant("bert-0", 5, namespace="team-language"), hidden=1, index=1))
    return _subject(pending("late", "0.5", waits), said, "0.5")


def denied() -> str:
    told = f"ReplicaSet resnet-5d8f7b6c9d, 9 times: {denial()}"
    return _block("deploy/resnet", Answer(name="Deployment team-vision/resnet", trouble=(told,)))


def failed() -> str:
    why = "requested number of devices unavailable for gpu-share.dev/vgpu. Requested: 5, Available: 4"
    status = {
        "phase": "Failed",
        "reason": "UnexpectedAdmissionError",
        "message": f"Pod was rejected: Allocate failed due to {why}, which is unexpected",
    }
    return _block("bert-0", _subject(pod("bert-0", "0.5", **status), state(gpu(), gpu(index=1)), "0.5"), "State")


def running() -> str:
    return _block("resnet-0", _subject(pod("resnet-0"), state(gpu(*_tenants())), "0.2"), "Granted", "GPU")


def beside_a_fault() -> str:
    last = ApplicationFault(xid=31, at="2026-01-01T10:24:07+00:00", tenants=tuple(one.name for one in _tenants()))
    said = state(msgspec.structs.replace(failed_gpu(*_tenants(), index=0), application_fault=last))
    runs = pod("resnet-0")
    runs["metadata"]["creationTimestamp"] = "2026-01-01T10:20:00+00:00"
    return _block("resnet-0", _subject(runs, said, "0.2", at="2026-01-01T10:25:00+00:00"), "GPU")


def _tenants() -> tuple[Tenant, ...]:
    used = Use(memory_bytes=21 * GIB, sm_ratio=0.18, processes=1)
    return (
        tenant("resnet-0", 2, use=used, thread_limit_ratio=0.2),
        tenant("bert-0", 5, namespace="team-language"),
    )


def _subject(one: Object, said: NodeState, share: str, *, at: str = "") -> Answer:
    """Look at a pod with *share*, on a cluster of which its one node says something."""
    seen = Seen(
        context="production",
        at=at or datetime.now(UTC).isoformat(),
        nodes=seen_nodes([msgspec.convert(node(), Node, dec_hook=as_shown)], {"gpu-a": said}),
    )
    written = rules.Pod(
        metadata=rules.Metadata(annotations={"gpu-share": share}),
        spec=rules.PodSpec(containers=[rules.Container(name="main", image="busybox:1.37")]),
    )
    subject = Subject(
        pod=seen_pod(msgspec.convert(one, Pod, dec_hook=as_shown)),
        seen=seen,
        asked=(f"annotation gpu-share: {share}",),
        decision=decide(written, "team-vision", _POLICIES),
    )
    return Answer(name="", subjects=(subject,))


def _block(name: str, answer: Answer, *only: str) -> str:
    """Write what is said; of the sections *only* these, or all."""
    (made,) = explanations(answer)
    lines = ["```", f"$ gpu-share explain {name} -n team-vision", made.title]
    for section in made.sections:
        if not only or section.title in only:
            lines += [f"  {section.title}", *(f"    {line}" for line in section.lines)]
        elif lines[-1] != "  ...":
            lines.append("  ...")
    return "\n".join([*lines, "```"])
