"""What the API server's own check says of a pod that the webhook admits: by a label of the namespace it only warns."""

from typing import Final, NamedTuple

from policies.api_server_check import denied_by_api_server
from policies.contract import MODE_LABEL
from policies.errors import quoted
from policies.grant import Decision, Grant, Untouched
from policies.pod import Pod
from policies.policy_set import PolicySet
from webhook.preview.listed_paths import unlisted
from webhook.preview.pod_security import PodSecurity

_LABEL: Final = f"{MODE_LABEL}=warn"
_ONLY_WARNS: Final = f"the API server's own check only warns of it, by the namespace's label {_LABEL}"
_BY_ITS_GRANT: Final = (
    f"the pod comes with a grant: without the namespace's label {_LABEL} the API server denies it unless all of the "
    "pod agrees with that grant"
)


class Checked(NamedTuple):
    """What comes of it."""

    denied: str = ""  # with this message
    warnings: tuple[str, ...] = ()  # as sentences


def checked(decision: Decision, pod: Pod, place: str, policies: PolicySet, security: PodSecurity) -> Checked:
    """Say what the API server does to a *pod* in the namespace *place* of which the webhook takes a *decision*."""
    match decision:
        case Grant():
            return _granted(pod, place, policies, security)
        case Untouched(denied=denied):
            if denied is not None and security.only_warns(place):  # as the webhook does already
                return Checked()
            if message := denied_by_api_server(pod, place, policies):
                return _left(message, place, policies, security)
            return Checked(warnings=(_BY_ITS_GRANT,) if denied is not None else ())
        case _:
            return Checked()


def _granted(pod: Pod, place: str, policies: PolicySet, security: PodSecurity) -> Checked:
    annotation = security.host_paths(place)
    said = unlisted(pod, place, policies, annotation)
    if not said or annotation is None:
        return Checked(warnings=(said,) if said else ())
    return Checked(warnings=(f"{_ONLY_WARNS}: {said}",)) if security.only_warns(place) else Checked(said)


def _left(message: str, place: str, policies: PolicySet, security: PodSecurity) -> Checked:
    only_warns = security.only_warns(place)
    if only_warns:
        return Checked(warnings=(f"{_ONLY_WARNS}: {message.rstrip('.')}",))
    if policies.of(place).policy.mode == "enforce":
        return Checked(message)
    command = f"kubectl label namespace {quoted(place, 63)[1:-1]} {_LABEL}"
    if only_warns is None:
        unknown = f"whether the namespace has the label {_LABEL} is not known (a Namespace beside the pods says so)"
        denied = f"if it does not, the API server denies the pod: {message.rstrip('.')}"
        return Checked(warnings=(f"{unknown}: {denied}; {command}",))
    return Checked(f"{message} Its policy says mode: warn, and the namespace lacks the label for that: {command}")
