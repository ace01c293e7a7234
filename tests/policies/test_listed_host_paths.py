"""What policies may list of the node's paths, and what a list says of a path."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.errors import PolicyError
from policies.host_paths import HostPathList, HostPathRule, writable_in
from policies.reading.oversights import oversights
from policies.reading.store import load
from tests.policies.pods import policies


def problems(tmp_path: Path, *, cluster: str = "", **files: str) -> list[str]:
    for name, text in ({"_cluster": cluster} | files).items():
        (tmp_path / f"{name}.yaml").write_text(text)
    with pytest.raises(PolicyError) as error:
        load(tmp_path)
    return [str(one).removeprefix(f"{tmp_path}/") for one in error.value.problems]


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/dev",
            "/dev/nvidia0",
            "/proc/1/root",
            "/sys",
            "/run/gpu-share",
            "/var/lib/gpu-share",
            "/var/run",
            "/var",
            "/etc",
            "/etc/cdi",
        ),
        "/var/lib",
        "/var/lib/kubelet/pods",
        "/var/lib/containers/storage",
        "/var/lib/rancher",
        "/tmp",
        "/tmp/nvidia-mps",
    ],
)
def test_what_bypasses_every_share_can_never_be_listed(tmp_path: Path, path: str) -> None:
    (said,) = problems(tmp_path, team=f"enabled: true\nhostPaths:\n- {{path: /data}}\n- path: {path}\n")
    assert said.startswith("team.yaml:")
    assert "can bypass every share, so no pod with a share may mount it: remove it" in said
    assert path in said


def test_the_problem_names_the_line_of_the_path(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, team="hostPaths:\n- path: /data\n- path: /dev\n")
    assert said.startswith("team.yaml:3: hostPaths[1].path: /dev can bypass every share")


def test_the_pipes_of_the_cluster_cannot_be_listed(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, cluster="mps: {pipeDirectory: /srv/mps}", team="mode: warn\nhostPaths: [{path: /srv}]")
    assert said.startswith("team.yaml:2: hostPaths: /srv, which holds /srv/mps, can bypass every share")


@pytest.mark.parametrize(
    "path", ["/", "data", "/data/", "//data", "/data/..", "/data/./a", "/a,b", "/a b", "/a:rw", ""]
)
def test_a_path_is_written_in_one_way(tmp_path: Path, path: str) -> None:
    (said,) = problems(tmp_path, team=f"hostPaths: [{{path: '{path}'}}]")
    assert "expected an absolute path of letters, digits and ._@%+=-" in said


@pytest.mark.parametrize(
    "path", ["/etc/ssl", "/usr", "/usr/local", "/root/models", "/var/log", "/lib64", "/opt", "/boot"]
)
def test_what_the_node_runs_can_be_read_and_not_written(tmp_path: Path, path: str) -> None:
    (said,) = problems(tmp_path, team=f"hostPaths: [{{path: {path}, writable: true}}]")
    assert "so it cannot be writable" in said or path == "/opt"
    if path != "/opt":
        policies(f"hostPaths: [{{path: {path}}}]")


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("[{path: /data}, {path: /data, writable: true}]", "/data is here twice"),
        ("[{path: /a, writable: true}, {path: /a/b}]", "/a/b lies in /a, where a pod may put a link in its place"),
        ("[{path: /a/b, writable: true}, {path: /a, writable: true}]", "/a/b lies in /a, where a pod may put a link"),
    ],
)
def test_rules_do_not_contradict_each_other(tmp_path: Path, rules: str, said: str) -> None:
    assert any(
        one.startswith(f"team.yaml:1: hostPaths: {said}") for one in problems(tmp_path, team=f"hostPaths: {rules}")
    )


def test_checking_says_what_the_namespace_needs() -> None:
    by = policies(
        "hostPaths: [{path: /a}]", team="hostPaths: [{path: /b}, {path: /c, writable: true}]", other="mode: enforce"
    )
    said = [str(one) for one in oversights(by, ["_default.yaml", "team.yaml", "other.yaml"], None)]
    needs = (
        "hostPaths: without an annotation on the namespace the API server denies pods that mount them: kubectl annotate"
    )
    assert said == [
        f"_default.yaml:1: {needs} --overwrite namespace NAME gpu-share.dev/host-paths=/a",
        f"team.yaml:1: {needs} --overwrite namespace team gpu-share.dev/host-paths=/b,/c:rw",
    ]


def test_a_path_in_a_writable_one_of_another_file_is_an_oversight() -> None:
    by = policies(team="hostPaths: [{path: /data/models}]", other="hostPaths: [{path: /data, writable: true}]")
    said = [str(one) for one in oversights(by, ["team.yaml", "other.yaml"], None) if "annotation" not in one.message]
    (only,) = said
    assert only == (
        "team.yaml:1: hostPaths: /data/models lies in /data, which other.yaml:1 lists as writable: a pod may put a "
        "link in its place, so it is denied everywhere; remove one of the two"
    )


def test_a_list_of_too_many_paths_says_how_many_there_may_be(tmp_path: Path) -> None:
    listed = "".join(f"- path: /data/m{number}\n" for number in range(103))
    (said,) = problems(tmp_path, team=f"hostPaths:\n{listed}")
    assert said.endswith("expected a list with at most 100 items, got a list: take out 3 of its 103 items")


NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(st.lists(st.tuples(NAMES, st.booleans()), max_size=4), NAMES)
def test_access_is_by_whole_components(rules: list[tuple[str, bool]], path: str) -> None:
    made = [HostPathRule(path=one, writable=writable) for one, writable in rules]
    listed = HostPathList.of(made, writable_in(made))
    parts = path.split("/")
    above = {"/".join(parts[:length]) for length in range(2, len(parts))}
    writable = {one for one, rw in rules if rw}
    readable = {one for one, rw in rules if not rw}
    expected = (
        "in a writable path"
        if above & writable
        else "writable"
        if path in writable
        else "read-only"
        if (above | {path}) & readable
        else "unlisted"
    )
    assert listed.access(path) == expected


class LookedUp(frozenset[str]):
    """Paths that nobody goes through."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("looked at one by one")


@pytest.mark.parametrize(
    ("path", "access"),
    [
        ("/a", "read-only"),
        ("/a/b/c", "read-only"),
        ("/w", "writable"),
        ("/w/x", "in a writable path"),
        ("/", "unlisted"),
    ],
)
def test_a_path_costs_the_same_however_many_are_writable(path: str, access: str) -> None:
    listed = HostPathList(LookedUp({"/a"}), LookedUp({"/w"}), LookedUp({"/w", *(f"/x/{one}" for one in range(9))}))
    assert listed.access(path) == access


def test_a_path_below_the_longest_that_can_be_listed_lies_in_it() -> None:
    longest = "/" + "/".join(["x" * 49] * 4)
    assert len(longest) == 200
    listed = HostPathList.of([HostPathRule(path=longest)], frozenset())
    assert listed.access(f"{longest}/y") == "read-only"
    assert listed.access(f"{longest}y") == "unlisted"
