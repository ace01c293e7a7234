"""What the pages are made of: the shared look, and answers of the API server that are kept for some seconds."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from console.api_server import ApiServer, UnseenError
from console.cluster_policies import RIGHT, read_policies
from console.explain.finding import find
from console.explain.maker import NotFoundError
from console.explain.sentences import Explanation, explanations
from console.look import PARTS_RIGHT, Looks, look, our_pods, unseen
from console.objects import Pod
from console.page.answers import Answers
from console.page.history import records
from console.page.recent import Records
from console.page.rules import Policies
from console.page.watch import Watch
from console.policy_sources import Sources, policy_sources, sources_seen
from console.seen import OUR_PODS, Unseen
from console.words import KEPT, Shown
from policies.errors import GpuShareError
from policies.policy_set import PolicySet
from policies.policy_volume import named

# Of a text with pods, the policies, the namespace that replaces theirs or "", and that of pods without one.
Preview = Callable[[str, PolicySet, str, str], Sequence[str]]

_POLICIES_SECONDS: Final = 10.0
_EXPLAINED_SECONDS: Final = 10.0
_RECORDS_SECONDS: Final = 20.0


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """What `explain` says of something, or why it says nothing."""

    explanations: tuple[Explanation, ...] = ()
    problem: str = ""


class Previewed(msgspec.Struct, frozen=True, kw_only=True):
    """What `preview` says of pods, or why it says nothing."""

    source: str = ""  # of the policies
    lines: tuple[str, ...] = ()
    problem: str = ""


class Desk:
    """Answers the pages of one user."""

    def __init__(self, api: ApiServer, *, namespace: str, preview: Preview) -> None:
        """Look by *api* at the pods of a *namespace*, or of all without one."""
        self.namespace = namespace or api.namespace  # where nothing else is named
        self.watch = Watch(lambda: look(api, namespace=namespace), context=api.context or api.address)
        self.records = Answers(self._records, seconds=_RECORDS_SECONDS)
        self.policies = Answers(self._policies, seconds=_POLICIES_SECONDS)
        self.explained = Answers(self._explain, seconds=_EXPLAINED_SECONDS)
        self._api = api
        self._namespace = namespace
        self._preview = preview

    def previewed(self, text: str, namespace: str) -> Previewed:
        """Say what would become of the pods in *text* by the policies of the cluster."""
        rules = self.policies.get(None)
        if rules.in_force is None:
            return Previewed(problem=rules.unseen.sentence if rules.unseen else "; ".join(rules.problems))
        source = f"{rules.source} of {self._api.context or self._api.address}"
        source += f"; where a file is broken, {KEPT}" * bool(rules.problems)
        try:
            lines = self._preview(text, rules.in_force, namespace, self.namespace)
        except GpuShareError as error:
            return Previewed(source=source, problem=str(error))
        return Previewed(source=source, lines=tuple(lines))

    def _records(self, _: None) -> Records:
        sources = self._sources()
        names = () if isinstance(sources, Unseen) else (one.name for one in sources)
        return records(self._api, self._namespace, policies=frozenset(names))

    def _policies(self, _: None) -> Policies:
        sources = self._sources()
        if isinstance(sources, Unseen):
            return Policies(unseen=sources)
        try:
            in_force, problems = read_policies(self._api, sources)
        except UnseenError as error:
            return Policies(unseen=unseen("the policies", error, RIGHT))
        return Policies(in_force=in_force, problems=problems, source=Shown(named(sources)))

    def _sources(self) -> Sources:
        """Say where the policies come from: by the newest look, or by the pods of gpu-share before there is any."""
        sight = self.watch.newest()
        if not sight.is_first_due:
            return sources_seen(sight.seen)
        looks = Looks()
        parts = looks.at(OUR_PODS, PARTS_RIGHT, lambda: [*our_pods(self._api)], list[Pod]())
        return policy_sources(parts, looks.hidden(OUR_PODS))

    def _explain(self, what: tuple[str, str]) -> Explained:
        namespace, name = what
        sight = self.watch.newest()
        try:
            answer = find(self._api, name, namespace, seen=None if sight.is_first_due else sight.seen)
        except (NotFoundError, UnseenError) as error:
            return Explained(problem=str(error))
        return Explained(explanations=explanations(answer))
