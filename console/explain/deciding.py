"""Decide on pods as their owners wrote them, by the policies of now, which are read once for all of them."""

from typing import NamedTuple

import msgspec

from console.api_server import ApiServer, UnseenError, path_of
from console.cluster_policies import RIGHT, read_policies
from console.look import unseen
from console.objects import Object
from console.policy_sources import Sources
from console.seen import Unseen
from console.words import KEPT, Shown
from policies import pod as rules
from policies.as_written import as_written
from policies.contract import POD_SECURITY_LABEL, RESTRICTED_LEVELS
from policies.decision import decide
from policies.grant import Decision
from policies.policy_set import PolicySet
from program.structs import decoder


class Rules(NamedTuple):
    """By what is decided in a namespace."""

    namespace: str
    policies: PolicySet
    restricted: bool


def rules_of_now(api: ApiServer, namespace: str, sources: Sources) -> Rules | Unseen:
    """Read by what is decided in a *namespace*, from the *sources* of policies, or say why that cannot be told."""
    if isinstance(sources, Unseen):
        return sources
    try:
        policies, problems = read_policies(api, sources)
        labels = api.one(Object, path_of("api", "v1", "namespaces", namespace)).metadata.labels
    except UnseenError as error:
        return unseen("the policies", error, f"{RIGHT}, and get namespaces")
    if policies is None:
        return Unseen(what="the policies", why="; ".join(problems))
    if policies.of(namespace).broken is not None:
        return Unseen(what="the policy of the namespace", why=f"{'; '.join(problems)}: {KEPT}")
    return Rules(namespace, policies, labels.get(POD_SECURITY_LABEL) in RESTRICTED_LEVELS)


def decision(content: bytes, by: Rules | Unseen) -> Decision | Unseen:
    """Decide on a pod, of which *content* is what the API server gives."""
    if isinstance(by, Unseen):
        return by
    try:
        read = decoder(rules.Pod).decode(content)
        written = as_written(msgspec.json.decode(content), read, by.namespace, by.policies)
        pod = rules.unbound(msgspec.convert(written, rules.Pod))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return Unseen(what="a decision", why=Shown(f"the pod cannot be read: {error}"))
    return decide(pod, by.namespace, by.policies, restricted=by.restricted)
