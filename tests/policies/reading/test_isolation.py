"""
What broken files cost: random states of a directory, one after the other, and an oracle that knows no code of ours.

A namespace is known by what its pods get: from how much, up to how much, or a denial that says which file is broken.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.errors import PolicyError, Problem
from policies.grant import Denied, Grant
from policies.policy_set import PolicySet
from policies.reading.layers import CLUSTER_FILE
from policies.reading.store import PolicyStore, load
from tests.policies.pods import decided, pod

BROKEN: Mapping[str, bytes] = {
    "unknown field": b"enabeld: true\n",
    "invalid YAML": b"share: [\n",
    "not UTF-8": b"# \xe9\n",
    "two of them": b"mode: off\nshare: {maximum: 1}\n",
}
NAMESPACES = ("a", "b", "c")
Bounds = tuple[int, int]  # from and up to how many tenths of a GPU


@dataclass(frozen=True)
class File:
    """A file: tenths, or None for a bound it leaves out; or what is broken in it."""

    minimum: int | None = None
    maximum: int | None = None
    broken: str = ""

    @property
    def content(self) -> bytes:
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        written = ", ".join(f'{name}: "{tenths / 10}"' for name, tenths in bounds.items() if tenths)
        return BROKEN[self.broken] if self.broken else f"share: {{{written}}}\n".encode()

    def over(self, under: Bounds) -> Bounds:
        return self.minimum or under[0], self.maximum or under[1]


def fits(bounds: Bounds) -> bool:
    return bounds[0] <= bounds[1]


TENTHS = st.none() | st.integers(1, 9)
FILE = st.builds(File, TENTHS, TENTHS) | st.builds(File, broken=st.sampled_from(sorted(BROKEN)))
BUILT_IN: Bounds = (0, 10)
ABSENT = File()


@dataclass(frozen=True)
class State:
    """All files of one moment; what is absent is not in it."""

    cluster: int | str | None  # vgpusPerGpu, or what is broken
    default: File | None
    own: Mapping[str, File]
    stray: bool  # a file whose name is no namespace
    misnamed: str | None  # a namespace that has a .yml

    def files(self) -> Iterator[tuple[str, bytes]]:
        if self.cluster is not None:
            broken = BROKEN.get(str(self.cluster))
            yield "_cluster.yaml", broken or f"vgpusPerGpu: {self.cluster}\n".encode()
        if self.default is not None:
            yield "_default.yaml", self.default.content
        for namespace, file in self.own.items():
            yield f"{namespace}.yaml", file.content
        if self.stray:
            yield "No_Namespace.yaml", b"enabled: false\n"
        if self.misnamed:
            yield f"{self.misnamed}.yml", b"enabled: true\n"


CLUSTER = st.sampled_from([None, 10, 20, "unknown field", "not UTF-8"])
MISNAMED = st.none() | st.sampled_from(NAMESPACES)
FIRST = st.builds(
    State, CLUSTER, st.none() | FILE, st.dictionaries(st.sampled_from(NAMESPACES), FILE), st.booleans(), MISNAMED
)
CHANGE = st.one_of(
    st.tuples(st.just("cluster"), CLUSTER),
    st.tuples(st.just("default"), st.none() | FILE),
    st.tuples(st.just("stray"), st.booleans()),
    st.tuples(st.just("misnamed"), MISNAMED),
    *[st.tuples(st.sampled_from(NAMESPACES), st.none() | FILE)] * 3,
)


def changed(states: list[State], changes: list[tuple[str, Any]]) -> State:
    """The state after the last one, with some files changed; None removes a namespace's."""
    own = {**states[-1].own, **{name: value for name, value in changes if name in NAMESPACES}}
    others = {name: value for name, value in changes if name not in NAMESPACES}
    return replace(states[-1], **others, own={name: file for name, file in own.items() if file is not None})


@dataclass
class Oracle:
    """What a process must know that has seen some states."""

    running: bool = False
    vgpus: int = 10
    default: Bounds = BUILT_IN
    last: dict[str, File] = field(default_factory=dict)  # good and in force; a namespace without a file is absent
    in_force: dict[str, Bounds | None] = field(default_factory=dict)  # None is denied

    def sees(self, state: State) -> set[str]:
        """Take a state, and name the files that are broken; the first state may be unusable."""
        broken = {"No_Namespace.yaml"} if state.stray else set()
        own_default = (state.default or ABSENT).over(BUILT_IN)
        default_is_good = not (state.default and state.default.broken) and fits(own_default)
        broken |= set() if default_is_good else {"_default.yaml"}
        broken |= {"_cluster.yaml"} if isinstance(state.cluster, str) else set()
        if not self.running and broken & {"_default.yaml", "_cluster.yaml"}:
            return broken & {"_default.yaml", "_cluster.yaml"}
        if not isinstance(state.cluster, str):
            self.vgpus = state.cluster or 10
        if default_is_good:
            self.default = own_default
        for namespace in NAMESPACES:
            broken |= self._namespace(namespace, state)
        self.running = True
        return broken

    def _namespace(self, namespace: str, state: State) -> set[str]:
        file, was = state.own.get(namespace), self.in_force.get(namespace)
        broken = set()
        if state.misnamed == namespace:
            broken.add(f"{namespace}.yml")
        if file is not None and file.broken:
            broken.add(f"{namespace}.yaml")
        if not broken and not fits((file or ABSENT).over(self.default)):
            broken.add(f"{namespace}.yaml")
        if not broken:
            self.last.pop(namespace, None)
            if file is not None:
                self.last[namespace] = file
            self.in_force[namespace] = (file or ABSENT).over(self.default)
        elif not self.running or was is None:
            self.in_force[namespace] = None
        else:
            again = self.last.get(namespace, ABSENT).over(self.default)
            self.in_force[namespace] = again if fits(again) else was
        return broken


class Volume:
    """A ConfigMap's volume: each state is a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._number = 0

    def holds(self, state: State) -> None:
        self._number += 1
        data = self.directory / f"..{self._number}"
        data.mkdir()
        for name, content in state.files():
            (data / name).write_bytes(content)
        link = self.directory / "..data_tmp"
        link.symlink_to(data.name)
        link.replace(self.directory / "..data")


def check(policies: PolicySet, oracle: Oracle) -> None:
    assert policies.cluster.vgpus_per_gpu == oracle.vgpus
    for namespace in (*NAMESPACES, "without-a-file"):
        expected = oracle.in_force[namespace] if namespace in NAMESPACES else oracle.default
        for tenths in (1, 3, 5, 7, 9, 10):
            decision = decided(pod(f"{tenths / 10}"), policies, namespace)
            if expected is None:
                assert isinstance(decision, Denied)
                assert decision.deny.code == "PolicyBroken"
                assert f"({namespace}.y" in decision.deny.message
            else:
                assert isinstance(decision, Grant) == (expected[0] <= tenths <= expected[1]), decision


def broken_files(problems: Iterable[Problem], directory: Path) -> set[str]:
    paths = {Path(one.file) for one in problems}
    assert {path.parent for path in paths} <= {directory}
    return {path.name for path in paths}


@settings(deadline=None, max_examples=150)
@given(FIRST, st.lists(st.lists(CHANGE, min_size=1, max_size=3), max_size=8))
def test_each_namespace_has_the_policy_it_must_have_whatever_breaks_and_is_mended(
    first: State, later: list[list[tuple[str, Any]]]
) -> None:
    states = [first]
    for changes in later:
        states.append(changed(states, changes))
    with tempfile.TemporaryDirectory() as name:
        volume, oracle, store = Volume(Path(name)), Oracle(), None
        for state in states:
            volume.holds(state)
            broken = oracle.sees(state)
            if not oracle.running:
                with pytest.raises(PolicyError) as caught:
                    PolicyStore(volume.directory)
                assert broken_files(caught.value.problems, volume.directory) == broken
                continue
            if store is None:
                store = PolicyStore(volume.directory)
            else:
                before = store.current
                told = store.refresh()
                assert told or store.current is before
            check(store.current, oracle)
            assert broken_files((one.problem for one in store.troubles), volume.directory) == broken
            assert store.refresh() is False
            check_restart(volume.directory, state)


def check_restart(directory: Path, state: State) -> None:
    """A process that starts now knows what the oracle knows that has seen this state alone."""
    oracle = Oracle()
    broken = oracle.sees(state)
    if oracle.running:
        check(PolicyStore(directory).current, oracle)
    else:
        with pytest.raises(PolicyError):
            PolicyStore(directory)
    if "_cluster.yaml" in broken:
        return
    assert PolicyStore(directory, needs=(CLUSTER_FILE,)).current.cluster.vgpus_per_gpu == oracle.vgpus or state.cluster
    if broken:
        with pytest.raises(PolicyError):
            load(directory)
    else:
        load(directory)
