"""Find what a user names: a pod, or an object that makes pods; and look at all that explains it."""

from typing import Final

import msgspec

from console.api_server import ApiServer, UnseenError, decoded, path_of
from console.cluster_policies import RIGHT, read_policies
from console.explain.subject import Answer, Subject
from console.look import look, seen_pod, unseen
from console.objects import Event, Object, Pod
from console.seen import Seen, Unseen
from console.words import Shown
from policies import pod as rules
from policies.contract import DRIVER, GRANT_ANNOTATION, SHARE_ANNOTATION
from policies.decision import decide
from policies.errors import GpuShareError
from policies.grant import Decision

_KINDS: Final = {
    "deployment": ("apps/v1", "deployments"),
    "statefulset": ("apps/v1", "statefulsets"),
    "daemonset": ("apps/v1", "daemonsets"),
    "replicaset": ("apps/v1", "replicasets"),
    "job": ("batch/v1", "jobs"),
    "cronjob": ("batch/v1", "cronjobs"),
}
_SHORT: Final = {"deploy": "deployment", "sts": "statefulset", "ds": "daemonset", "rs": "replicaset", "cj": "cronjob"}
_ENFORCE_LABEL: Final = "pod-security.kubernetes.io/enforce"
_RESTRICTED: Final = ("baseline", "restricted")
_NOT_FOUND: Final = 404
_MOST_EVENTS: Final = 5
_MARKS: Final = ("gpu-share", "vgpu")


class _Toleration(msgspec.Struct, frozen=True):
    key: str = ""


class _WantsSpec(msgspec.Struct, frozen=True):
    nodeSelector: dict[str, str] = {}  # noqa: N815 - as the API server spells it
    tolerations: tuple[_Toleration, ...] = ()


class _Wants(msgspec.Struct, frozen=True):
    spec: _WantsSpec = _WantsSpec()


class NotFoundError(GpuShareError):
    """Nothing of that name; the sentence says what was looked for."""


def find(api: ApiServer, name: str, namespace: str, *, seen: Seen | None = None) -> Answer:
    """
    Look at what *name* names: a pod, or `kind/name`; *seen* is the cluster, where it was looked at just now.

    Raises:
        NotFoundError: If there is nothing of it.
        UnseenError: If the user may not read pods there.
    """
    kind, slash, rest = name.partition("/")
    kind = _SHORT.get(kind.lower().rstrip("s"), kind.lower().rstrip("s")) if slash else ""
    if slash and kind not in (*_KINDS, "pod"):
        raise NotFoundError(f"{Shown(name)}: expected a pod, or one of {', '.join(_KINDS)} with / and its name")
    plain = rest if slash else name
    raw = [*api.all(msgspec.Raw, path_of("api", "v1", "namespaces", namespace, "pods"))]
    pods = [(decoded(Pod, bytes(one)), bytes(one)) for one in raw]
    chosen = [one for one in pods if one[0].metadata.name == plain] if kind in ("", "pod") else []
    title = f"Pod {namespace}/{plain}"
    if not chosen and kind != "pod":
        made = _maker(api, kind, plain, namespace)
        title = f"{made.title()} {namespace}/{plain}"
        chosen = [one for one in pods if _is_of(one[0], plain, made)]
    elif not chosen:
        raise NotFoundError(f"there is no {title}")
    seen = seen or look(api, namespace=namespace)
    denied = (one for one in seen.denials if one.namespace == namespace)
    denials = tuple(one for one in denied if one.name == plain or one.name.startswith(f"{plain}-"))
    subjects = tuple(_subject(api, pod, content, seen) for pod, content in chosen)
    return Answer(name=title, subjects=subjects, denials=denials)


def _maker(api: ApiServer, kind: str, name: str, namespace: str) -> str:
    """Find which kind of object has the name."""
    for one in (kind,) if kind else _KINDS:
        version, resource = _KINDS[one]
        try:
            api.one(Object, path_of("apis", *version.split("/"), "namespaces", namespace, resource, name))
        except UnseenError as error:
            if error.status != _NOT_FOUND:
                raise
        else:
            return one
    raise NotFoundError(f"there is no {kind or 'pod, nor a workload,'} {Shown(name)} in namespace {namespace}")


def _is_of(pod: Pod, name: str, kind: str) -> bool:
    """Whether a pod was made by an object, or by what that has made."""
    for owner in pod.metadata.owner_references:
        is_direct = owner.kind.lower() == kind and owner.name == name
        through = {"deployment": "ReplicaSet", "cronjob": "Job"}.get(kind)
        is_through = owner.kind == through and owner.name.rpartition("-")[0] == name
        if is_direct or is_through:
            return True
    return False


def _subject(api: ApiServer, pod: Pod, content: bytes, seen: Seen) -> Subject:
    decision, undecided = _decision(api, content, str(pod.metadata.namespace))
    events = f"involvedObject.uid={pod.metadata.uid}"
    try:
        wants = decoded(_Wants, content).spec
    except UnseenError:
        wants = _WantsSpec()
    return Subject(
        pod=seen_pod(pod),
        seen=seen,
        asked=_asked(pod),
        decision=decision,
        undecided=undecided,
        selector=wants.nodeSelector,
        tolerates=frozenset(one.key for one in wants.tolerations),
        events=_events(api, str(pod.metadata.namespace), events),
    )


def _decision(api: ApiServer, content: bytes, namespace: str) -> tuple[Decision | None, Unseen | None]:
    """Decide on a pod by the policies of now."""
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
        pod = msgspec.json.decode(content, type=rules.Pod)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return None, Unseen(what="a decision", why=Shown(f"the pod cannot be read: {error}"))
    return decide(pod, namespace, policies, restricted=labels.get(_ENFORCE_LABEL) in _RESTRICTED), None


def _asked(pod: Pod) -> tuple[str, ...]:
    """Say by what a pod asks for a share, and what it says of frameworks."""
    asked = [
        Shown(f"annotation {key}: {value}")
        for key, value in sorted(pod.metadata.annotations.items())
        if (key == SHARE_ANNOTATION or DRIVER in key) and key != GRANT_ANNOTATION
    ]
    asked += [
        Shown(f"limit of {container.name}: {amount} x {resource}")
        for container in (*pod.spec.init_containers, *pod.spec.containers)
        for resource, amount in sorted(container.resources.limits.items())
        if any(mark in resource for mark in _MARKS)
    ]
    return tuple(asked)


def _events(api: ApiServer, namespace: str, selector: str) -> tuple[str, ...]:
    """Read what was said of a pod last; nothing where events may not be read, which is said elsewhere."""
    try:
        found = [*api.all(Event, path_of("api", "v1", "namespaces", namespace, "events"), fieldSelector=selector)]
    except UnseenError:
        return ()
    found.sort(key=lambda one: one.last_timestamp or one.event_time or one.metadata.creation_timestamp or "")
    return tuple(f"{one.reason}: {one.message}" for one in found if one.type == "Warning")[-_MOST_EVENTS:]
