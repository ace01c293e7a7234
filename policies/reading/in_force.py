"""
Files to the policies in force, where a broken file costs as little as it can.

A broken file of a namespace concerns that namespace alone. Where a policy was in force before, it stays in force.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from policies.cluster import Cluster
from policies.errors import PolicyError, Problem
from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.detection import Catalogue
from policies.host_paths import writable_in
from policies.policy import EffectivePolicy, broken_policy
from policies.policy_set import PolicySet
from policies.reading.layers import CLUSTER_FILE, DEFAULT_FILE, Layer, effective, judging, owner_of
from policies.reading.told import MOST_OF_A_FILE, MOST_TOLD
from policies.reading.troubles import Trouble

_NOTHING: Final = Layer("", {}, {})
_STAYS: Final = "the last good one stays in force"


class PolicyFile(msgspec.Struct, frozen=True, gc=False):
    """One policy file as it was read."""

    content: bytes | None  # None if it is broken
    layer: Layer
    problems: tuple[Problem, ...]  # if there are any, the layer is not used
    may_pass: bool = False  # whether they may be over at the next look, though nothing of the file changes


def broken_file(*problems: Problem, may_pass: bool = False) -> PolicyFile:
    """Make a file that says nothing; it is read again with each change, since others may leave it more room to tell."""
    return PolicyFile(None, _NOTHING, problems, may_pass)


class InForce(msgspec.Struct, frozen=True):
    """The policies in force, what they were made of, and what is wrong with the files now."""

    policies: PolicySet
    cluster: Layer | None
    default: Layer | None
    own: dict[str, Layer]  # by namespace
    troubles: tuple[Trouble, ...]  # of many those that are told
    troubled: frozenset[str]  # the policies of all there are
    broken_files: int


def put_in_force(
    files: Mapping[str, PolicyFile],
    before: InForce | None,
    *,
    needs: Collection[str] = (CLUSTER_FILE, DEFAULT_FILE),
    last: Layer | None = None,
) -> InForce:
    """
    Say what is in force by *files*, and by what was in force *before*; None in a process that starts.

    *last* is the `_cluster.yaml` that holds in one that starts while that of now is broken.

    Raises:
        PolicyError: If one of the files that the process *needs* is broken, and nothing was in force before.
    """
    return _Change(files, before, last).made(needs)


class _Change:
    """From one state of the files to what is in force."""

    def __init__(self, files: Mapping[str, PolicyFile], before: InForce | None, last: Layer | None) -> None:
        self._before = before
        self._last = last
        self._problems: dict[str | None, list[Problem]] = {}  # by the name the file should have
        self._effects: dict[str | None, str] = {None: "no policy is affected"}
        for name, file in files.items():
            if file.problems:
                self._problems.setdefault(owner_of(name, files), []).extend(file.problems)
        # A good file does not help its namespace where another one was meant for it, too.
        self._layers = {
            name: file.layer for name, file in files.items() if not file.problems and name not in self._problems
        }
        self._own: dict[str, Layer] = {}
        self._judged_by = judging(None)  # `_cluster.yaml`, which is looked at first
        self._alike: InForce | None = None  # what was in force before, if other files are judged by the same as then
        self._left = MOST_TOLD - sum(map(len, self._problems.values()))

    def made(self, needs: Collection[str]) -> InForce:
        cluster_layer, cluster, catalogue = self._cluster()
        is_unknown = cluster_layer is None and self._before is None and CLUSTER_FILE in self._problems
        self._judged_by = judging(None if is_unknown else cluster)
        if self._before is not None and judging(self._before.policies.cluster) == self._judged_by:
            self._alike = self._before
        default_layer, default = self._default()
        if self._before is None and (fatal := [one for file in needs for one in self._problems.get(file, ())]):
            raise PolicyError(tuple(sorted(dict.fromkeys(fatal), key=_place)))
        files = (self._layers.keys() | self._problems.keys()) - {CLUSTER_FILE, DEFAULT_FILE, None}
        namespaces = {}
        for file in sorted(file for file in files if file):
            namespace = file.removesuffix(".yaml")
            policy = self._namespace(namespace, default_layer, default)
            if policy is not default:
                namespaces[namespace] = policy
        every = (default, *namespaces.values())
        policies = PolicySet(
            cluster=cluster,
            catalogue=catalogue,
            default=default,
            namespaces=namespaces,
            written_host_paths={
                path: one.source("hostPaths")
                for one in reversed(every)  # the default's own where others have it from there
                for path in writable_in(one.policy.host_paths)
            },
        )
        if self._before is not None and policies == self._before.policies:
            policies = self._before.policies
        found = [(one, file) for file, problems in self._problems.items() for one in dict.fromkeys(problems)]
        return InForce(
            policies,
            cluster_layer,
            default_layer,
            self._own,
            tuple(self._troubles(found, policies)),
            troubled=frozenset(map(_policy_of, self._problems)),
            broken_files=len({problem.file for problem, _ in found}),
        )

    def _cluster(self) -> tuple[Layer | None, Cluster, Catalogue]:
        before, layer = self._before, self._layers.get(CLUSTER_FILE)
        if CLUSTER_FILE in self._problems:
            self._effects[CLUSTER_FILE] = _STAYS
            layer = before.cluster if before is not None else self._last
        if before is not None and layer is before.cluster:
            return layer, before.policies.cluster, before.policies.catalogue
        cluster = layer.convert(Cluster) if layer is not None else Cluster()
        return layer, cluster, Catalogue(BUILT_IN, cluster.frameworks)

    def _default(self) -> tuple[Layer | None, EffectivePolicy]:
        before, layer = self._before, self._layers.get(DEFAULT_FILE)
        if DEFAULT_FILE not in self._problems:
            if (alike := self._alike) and layer is alike.default and _policy_of(DEFAULT_FILE) not in alike.troubled:
                return layer, alike.policies.default
            made = self._layered(DEFAULT_FILE, layer)
            if made is not None:
                return layer, made
        if before is not None and before.policies.default.broken is None:
            self._effects[DEFAULT_FILE] = _STAYS
            return before.default, before.policies.default
        self._effects[DEFAULT_FILE] = "no policy is known for any namespace"
        return None, broken_policy("_default", min(self._problems[DEFAULT_FILE], key=_place))

    def _namespace(self, namespace: str, default_layer: Layer | None, default: EffectivePolicy) -> EffectivePolicy:
        file = f"{namespace}.yaml"
        if default.broken is not None:
            self._effects[file] = "no policy is known for the namespace"
            return broken_policy(namespace, min(self._problems.get(file, [default.broken]), key=_place))
        layer = self._layers.get(file)
        if layer is not None:
            policy = self._unchanged(namespace, layer, default) or self._layered(file, default_layer, layer)
            if policy is not None:
                self._own[namespace] = layer
                return policy
        return self._last_good(namespace, default_layer, default)

    def _unchanged(self, namespace: str, layer: Layer, default: EffectivePolicy) -> EffectivePolicy | None:
        """Return the policy that was made of the same layers, so that one file's change costs no more than that."""
        alike = self._alike
        if alike is None or namespace in alike.troubled or default is not alike.policies.default:
            return None
        return alike.policies.of(namespace) if layer is alike.own.get(namespace) else None

    def _last_good(self, namespace: str, default_layer: Layer | None, default: EffectivePolicy) -> EffectivePolicy:
        """Choose the policy of a namespace whose file is broken now."""
        file, before = f"{namespace}.yaml", self._before
        if before is None or before.policies.of(namespace).broken is not None:
            self._effects[file] = f"pods with a share are denied in the namespace {namespace}"
            return broken_policy(namespace, min(self._problems[file], key=_place))
        layer = before.own.get(namespace)
        if layer is None:
            self._effects[file] = f"the namespace {namespace} keeps the policy of {DEFAULT_FILE}"
            return default
        self._effects[file] = _STAYS
        self._own[namespace] = layer
        conflicts: list[Problem] = []
        policy = self._effective([*_given(default_layer), layer], conflicts)
        return before.policies.of(namespace) if conflicts else policy

    def _effective(self, layers: Sequence[Layer], conflicts: list[Problem]) -> EffectivePolicy:
        return effective(
            layers,
            conflicts,
            **self._judged_by,
            most=max(1, min(MOST_OF_A_FILE, self._left)),
        )

    def _layered(self, file: str, *layers: Layer | None) -> EffectivePolicy | None:
        """Lay layers over each other; None if they conflict, which is a problem of *file*."""
        conflicts: list[Problem] = []
        policy = self._effective([*_given(*layers)], conflicts)
        if conflicts:
            self._problems.setdefault(file, []).extend(conflicts)
            self._left -= len(conflicts)
            return None
        return policy

    def _troubles(self, found: list[tuple[Problem, str | None]], policies: PolicySet) -> Iterator[Trouble]:
        """Yield what is wrong and what it costs; of many problems some, and that there are more."""
        found.sort(key=lambda one: (one[1] not in (CLUSTER_FILE, DEFAULT_FILE), *_place(one[0])))
        for problem, file in sorted(found[:MOST_TOLD], key=lambda one: _place(one[0])):
            name = _policy_of(file)
            yield Trouble(problem, name, self._effect(file, name, policies))
        if rest := found[MOST_TOLD:]:
            count = len({problem.file for problem, _ in rest})
            message = f"at least {len(rest)} more problems, in {count} files, are not listed: correct the others first"
            yield Trouble(Problem(rest[0][0].file, 0, "", message), "", "their policies are affected as others are")

    def _effect(self, file: str | None, name: str, policies: PolicySet) -> str:
        return "no pod is affected: the namespace is exempt" if policies.is_exempt(name) else self._effects[file]


def _given(*layers: Layer | None) -> Iterable[Layer]:
    return (layer for layer in layers if layer is not None)


def _policy_of(file: str | None) -> str:
    """Name the policy that a file counts for; empty if there is none."""
    return (file or "").removesuffix(".yaml")


def _place(problem: Problem) -> tuple[str, int]:
    """Order problems by where they are; those of one line stay as they were found."""
    return problem.file, problem.line
