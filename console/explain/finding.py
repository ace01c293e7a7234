"""Find what a user names: a pod, or an object that makes pods; and look at all that explains it."""

from collections.abc import Sequence
from functools import cache, partial
from typing import Final

from console.api_server import ApiServer, UnseenError, decoded
from console.explain.asked import asked
from console.explain.beside import Beside
from console.explain.crowd import Chosen, Crowd
from console.explain.deciding import decision
from console.explain.maker import NotFoundError, find_maker
from console.explain.pods import made_by, named, wants
from console.explain.room import together
from console.explain.subject import Answer, Subject
from console.explain.troubles import Troubles
from console.explain.warnings import last, of_now
from console.explain.workload import is_over, own_words, states
from console.look import look_at_nodes, seen_pod
from console.owners import KINDS, MORE_KINDS
from console.seen import Seen, Unseen
from console.words import Shown
from policies import pod as rules

_SHORT: Final = {  # as kubectl has them
    "po": "pod",
    "deploy": "deployment",
    "sts": "statefulset",
    "ds": "daemonset",
    "rs": "replicaset",
    "cj": "cronjob",
}


def find(api: ApiServer, name: str, namespace: str, *, seen: Seen | None = None) -> Answer:
    """
    Look at what *name* names: a pod, or `kind/name`; *seen* is the cluster, where it was looked at just now.

    Raises:
        NotFoundError: If there is nothing of it, or nothing that can be seen.
        UnseenError: If the user may not read pods there.
    """
    kind, plain = _named(name)
    see = cache(lambda: seen or look_at_nodes(api))  # once there is something to explain
    beside = Beside(api, namespace, see)
    chosen = named(api, namespace, plain) if kind in ("", "pod") else ()
    if chosen:
        subjects = _subjects(chosen, see(), beside)
        return Answer(name=f"Pod {namespace}/{Shown(plain)}", subjects=subjects, unseen=(*see().unseen, *beside.unseen))
    kinds = {"": tuple(KINDS), "pod": ()}.get(kind, (kind,))
    troubles = cache(lambda: Troubles(see()))
    new = partial(Crowd, lambda pod: troubles().of(seen_pod(pod)), beside.in_the_way)
    crowds = made_by(api, namespace, kinds, plain, new=new)
    made, workload, failures = find_maker(api, kind, plain, beside=beside, crowds=crowds)
    crowd = crowds[made]
    subjects = _subjects(crowd.chosen, see(), beside)
    return Answer(
        name=f"{made.title()} {namespace}/{Shown(plain)}",
        subjects=subjects,
        more=crowd.count - sum(1 + one.alike for one in subjects),
        trouble=(*failures, *own_words(workload, failures)),
        states=tuple(states(workload)),
        is_over=is_over(workload),
        quotas=beside.quotas() if not subjects else (),
        unseen=(*see().unseen, *beside.unseen),
    )


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


def _subjects(chosen: Sequence[Chosen], seen: Seen, beside: Beside) -> tuple[Subject, ...]:
    if not chosen:
        return ()
    beside.read_events(str(one.pod.metadata.uid) for one in chosen)
    return tuple(_subject(one, seen, beside) for one in chosen)


def _subject(one: Chosen, seen: Seen, beside: Beside) -> Subject:
    pod, content = one.pod, one.content
    decided = decision(content, beside.rules)
    wanted = wants(content)
    try:
        containers = rules.slots(decoded(rules.Pod, content))
    except UnseenError:
        containers = []
    found, told = seen_pod(pod), beside.events(pod.metadata.uid)
    return Subject(
        pod=found,
        seen=seen,
        asked=asked(pod, content, beside.shares),
        alike=one.alike,
        decision=None if isinstance(decided, Unseen) else decided,
        undecided=decided if isinstance(decided, Unseen) else None,
        together=together(found.grant, containers),
        selector=wanted.node_selector,
        tolerations=wanted.tolerations,
        events=last(told),
        in_the_way=of_now(told, pod),
        claims=beside.claims(found, content),
        quotas=beside.quotas() if found.waits else (),
        unseen=beside.unseen,
    )
