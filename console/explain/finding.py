"""Find what a user names: a pod, or an object that makes pods; and look at all that explains it."""

from typing import Final

import msgspec

from console.api_server import ApiServer, UnseenError, decoded, path_of
from console.cluster_policies import RIGHT, read_policies
from console.explain.asked import asked
from console.explain.beside import Beside
from console.explain.maker import NotFoundError, find_maker
from console.explain.room import together
from console.explain.subject import Answer, Subject
from console.explain.workload import makes, own_words
from console.look import look, seen_pod, unseen
from console.objects import Object, Pod
from console.owners import KINDS, MORE_KINDS
from console.seen import Seen, Unseen
from console.words import Shown
from policies import pod as rules
from policies.as_written import as_written
from policies.contract import POD_SECURITY_LABEL, RESTRICTED_LEVELS
from policies.decision import decide
from policies.grant import Decision
from program.structs import decoder

_SHORT: Final = {  # as kubectl has them
    "po": "pod",
    "deploy": "deployment",
    "sts": "statefulset",
    "ds": "daemonset",
    "rs": "replicaset",
    "cj": "cronjob",
}


class _Toleration(msgspec.Struct, frozen=True):
    key: str = ""


class _WantsSpec(msgspec.Struct, frozen=True):
    nodeSelector: dict[str, str] = {}  # noqa: N815 - as the API server spells it
    tolerations: tuple[_Toleration, ...] = ()


class _Wants(msgspec.Struct, frozen=True):
    spec: _WantsSpec = _WantsSpec()


def find(api: ApiServer, name: str, namespace: str, *, seen: Seen | None = None) -> Answer:
    """
    Look at what *name* names: a pod, or `kind/name`; *seen* is the cluster, where it was looked at just now.

    Raises:
        NotFoundError: If there is nothing of it, or nothing that can be seen.
        UnseenError: If the user may not read pods there.
    """
    kind, plain = _named(name)
    raw = [*api.all(msgspec.Raw, path_of("api", "v1", "namespaces", namespace, "pods"))]
    pods = [(decoded(Pod, bytes(one)), bytes(one)) for one in raw]
    chosen = [one for one in pods if one[0].metadata.name == plain] if kind in ("", "pod") else []
    beside = Beside(api, namespace)
    title, trouble = f"Pod {namespace}/{plain}", tuple[str, ...]()
    if not chosen:
        made, workload, failures = find_maker(api, kind, plain, beside=beside, pods=[one for one, _ in pods])
        title = f"{made.title()} {namespace}/{plain}"
        trouble = (*failures, *own_words(workload, failures))
        chosen = [one for one in pods if makes(made, plain, one[0])]
    seen = seen or look(api, namespace=namespace)
    subjects = tuple(_subject(api, pod, content, seen, beside) for pod, content in chosen)
    quotas = beside.quotas() if not subjects else ()
    return Answer(name=title, subjects=subjects, trouble=trouble, quotas=quotas, unseen=(*seen.unseen, *beside.unseen))


def _named(name: str) -> tuple[str, str]:
    """Read a kind, empty if none is named, and the name of the object."""
    kind, slash, rest = name.partition("/")
    if not slash and name:
        return "", name
    kind = _SHORT.get(kind.lower(), kind.lower().removesuffix("s"))
    if kind not in (*KINDS, *MORE_KINDS, "pod") or not rest:
        known = ", ".join((*KINDS, *MORE_KINDS))
        raise NotFoundError(f"'{Shown(name)}': expected a pod, or one of {known} with / and its name")
    return kind, rest


def _subject(api: ApiServer, pod: Pod, content: bytes, seen: Seen, beside: Beside) -> Subject:
    decision, undecided = _decision(api, content, str(pod.metadata.namespace))
    try:
        wants = decoded(_Wants, content).spec
    except UnseenError:
        wants = _WantsSpec()
    try:
        containers = rules.slots(decoded(rules.Pod, content))
    except UnseenError:
        containers = []
    found = seen_pod(pod)
    return Subject(
        pod=found,
        seen=seen,
        asked=asked(pod, content),
        decision=decision,
        undecided=undecided,
        together=together(found.grant, containers),
        selector=wants.nodeSelector,
        tolerates=frozenset(one.key for one in wants.tolerations),
        events=beside.events(str(pod.metadata.uid)),
        claims=beside.claims(found, content),
        quotas=beside.quotas() if found.waits else (),
        unseen=beside.unseen,
    )


def _decision(api: ApiServer, content: bytes, namespace: str) -> tuple[Decision | None, Unseen | None]:
    """Decide on a pod as its owner wrote it, by the policies of now."""
    try:
        policies, problems = read_policies(api)
        labels = api.one(Object, path_of("api", "v1", "namespaces", namespace)).metadata.labels
    except UnseenError as error:
        return None, unseen("the policies", error, f"{RIGHT}, and get namespaces")
    if policies is None:
        return None, Unseen(what="the policies", why="; ".join(problems))
    if policies.of(namespace).broken is not None:
        kept = "a webhook keeps the policy that it had, and one that has started since denies"
        return None, Unseen(what="the policy of the namespace", why=f"{'; '.join(problems)}: {kept}")
    try:
        read = decoder(rules.Pod).decode(content)
        written = as_written(msgspec.json.decode(content), read, namespace, policies)
        pod = rules.unbound(msgspec.convert(written, rules.Pod))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return None, Unseen(what="a decision", why=Shown(f"the pod cannot be read: {error}"))
    is_restricted = labels.get(POD_SECURITY_LABEL) in RESTRICTED_LEVELS
    return decide(pod, namespace, policies, restricted=is_restricted), None
