"""Which denials still count: of controllers that want pods, and that make pods with a share."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final, NamedTuple

from console.api_server import MANY_SECONDS, ApiServer, UnseenError, decoded
from console.cluster_policies import resources_of_shares
from console.denials import Denials
from console.owners import kind_of, wanting, wants_pods
from console.pod_templates import Resources, asks
from console.policy_sources import Sources
from console.seen import Denial
from console.words import several
from policies.cluster import Cluster

_MOST_ASKED: Final = 32  # controllers whose pods were denied
_QUOTA: Final = "exceeded quota"  # as Kubernetes says it


class Standing(NamedTuple):
    """Denials of controllers that still want pods."""

    denials: tuple[Denial, ...]
    unseen: UnseenError | None  # why of some it is not known whether they make pods with a share


def standing(
    api: ApiServer, found: Denials, threads: ThreadPoolExecutor, *, resources: Iterable[str], sources: Sources
) -> Standing:
    """
    Leave out those whose controller is gone or wants no pods; one of those that name us stays where nobody sees that.

    Of the others, only controllers are left that make pods with a share; *resources* are those of shares on the nodes,
    and the policies, which may have more of them, come from *sources*.
    """
    # What a quota holds back is seldom a share, and can be very many.
    others = sorted(found.others, key=lambda one: _QUOTA in one.message)
    by = resources_of_shares(api, sources, resources) if others else Resources(Cluster(), frozenset())
    api.sign_in()
    asked = [threads.submit(wants_pods, api, one) for one in found.ours[:_MOST_ASKED]]
    looked = [threads.submit(_shares, api, one, by) for one in others[: _MOST_ASKED - len(asked)]]
    waiting: list[Future[Any]] = [*asked, *looked]
    wait(waiting, timeout=MANY_SECONDS)
    wants = [not one.done() or one.result() for one in asked] + [True] * (len(found.ours) - len(asked))
    shares = [one.result() if one.done() else UnseenError("no answer in time") for one in looked]
    most = UnseenError(f"at most {_MOST_ASKED} are looked at")
    shares += [most] * (len(others) - len(looked))
    left = [one for one, is_wanting in zip(found.ours, wants, strict=True) if is_wanting]
    left += [one for one, is_shared in zip(others, shares, strict=True) if is_shared is True]
    unseen = [one for one in shares if isinstance(one, UnseenError)]
    return Standing(tuple(sorted(left, key=lambda one: (one.namespace, one.kind, one.name))), _together(unseen))


def _together(unseen: Sequence[UnseenError]) -> UnseenError | None:
    if not unseen:
        return None
    first = unseen[0]
    of = several(len(unseen), "controller")
    return UnseenError(f"whether pods of {of} that were not created have a share: {first}", status=first.status)


def _shares(api: ApiServer, on: Denial, by: Resources) -> bool | UnseenError:
    """Whether an object wants pods, and some template in it asks for a share; of a kind that nobody knows none does."""
    kind = kind_of(on)
    if kind is None:
        return False
    try:
        content = wanting(api, kind, on)
        found = content is not None and asks(decoded(dict[str, Any], content), kind.templates, by)
    except UnseenError as error:
        return error
    return UnseenError(by.unread) if found is None else found
