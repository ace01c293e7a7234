"""What a policy may list of the node's paths, and what a pod with a share may mount of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.contract import GRANT_ANNOTATION
from policies.ephemeral import decide_on_added
from policies.errors import PolicyError
from policies.grant import Added, Denied
from policies.host_paths import HostPathList, HostPathRule, writable_in
from policies.pod import Pod
from policies.reading.oversights import oversights
from policies.reading.store import load
from tests.policies.pods import container, denied, granted, mutated, only_container, pod, policies
from webhook.patch import hiding

LISTED = policies("hostPaths:\n- {path: /data/models}\n- {path: /scratch, writable: true}")
MOUNT = {"name": "data", "mountPath": "/data"}
READ_ONLY = MOUNT | {"readOnly": True}


def mounting(path: str, *, mount: dict[str, Any] = READ_ONLY, **host: Any) -> dict[str, Any]:
    volume = {"name": "data", "hostPath": {"path": path, **host}}
    return pod("0.2", container(volumeMounts=[mount]), volumes=[volume])


def problems(tmp_path: Path, *, cluster: str = "", **files: str) -> list[str]:
    for name, text in ({"_cluster": cluster} | files).items():
        (tmp_path / f"{name}.yaml").write_text(text)
    with pytest.raises(PolicyError) as error:
        load(tmp_path)
    return [str(one).removeprefix(f"{tmp_path}/") for one in error.value.problems]


@pytest.mark.parametrize(
    "path",
    [
        *("/dev", "/dev/nvidia0", "/proc/1/root", "/sys", "/run/gpu-share", "/var/run", "/var", "/etc", "/etc/cdi"),
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


def test_a_writable_path_may_lie_in_a_read_only_one() -> None:
    by = policies("hostPaths: [{path: /data}, {path: /data/scratch, writable: true}]")
    granted(mounting("/data/scratch", mount=MOUNT), by)
    granted(mounting("/data/models"), by)
    # It is read-only, but may be a link that was put there by who can write to the path above.
    assert "may be a link" in denied(mounting("/data/scratch/a"), by).message


def test_what_pods_of_another_namespace_may_write_is_no_path_of_this_one() -> None:
    by = policies("hostPaths: [{path: /data}]", other="hostPaths: [{path: /data/scratch, writable: true}]")
    assert "may be a link" in denied(mounting("/data/scratch/a"), by).message
    granted(mounting("/data/scratch"), by)  # itself it cannot be replaced by who mounts it
    granted(mounting("/data/models"), by)


def test_a_namespace_replaces_the_list_of_the_default() -> None:
    by = policies("hostPaths: [{path: /a}]", team="hostPaths: [{path: /b}]")
    granted(mounting("/a"), by, "other")
    granted(mounting("/b"), by, "team")
    assert "(team.yaml:1)" in denied(mounting("/a"), by, "team").message


def test_the_denial_names_the_field_and_where_it_is() -> None:
    deny = denied(mounting("/srv/llama"), LISTED)
    assert deny.code == "ConflictingRequest"
    assert deny.message == (
        'The volume "data" is the node\'s "/srv/llama", which hostPaths of the policy does not list (_default.yaml:1). '
        "Ask its administrator for hostPaths: [{path: /srv/llama}], or remove the volume."
    )


def test_a_long_path_leaves_what_to_do_in_the_message() -> None:
    assert denied(mounting("/srv/" + "x" * 4000)).message.endswith("hostPaths: [{path: ...}], or remove the volume.")


@pytest.mark.parametrize("path", ["/data/models", "/data/models/", "/data/models/a/.b"])
def test_a_listed_path_and_all_in_it_may_be_read(path: str) -> None:
    granted(mounting(path), LISTED)
    deny = denied(mounting(path, mount=MOUNT), LISTED)
    assert deny.message == (
        'Container "main" mounts "data" writable, a path of the node that is read-only here (_default.yaml:1). '
        "Set readOnly: true in its volumeMounts."
    )


def test_a_read_only_mount_is_read_only_below_as_well() -> None:
    made = mutated(mounting("/data/models"), LISTED)
    assert only_container(made)["volumeMounts"][0] == READ_ONLY | {"recursiveReadOnly": "IfPossible"}
    assert mutated(made, LISTED) == made


@pytest.mark.parametrize("said", ["Enabled", "IfPossible"])
def test_what_the_pod_says_of_it_itself_stays(said: str) -> None:
    made = mutated(mounting("/data/models", mount=READ_ONLY | {"recursiveReadOnly": said}), LISTED)
    assert only_container(made)["volumeMounts"][0]["recursiveReadOnly"] == said


def test_it_holds_for_the_right_mount_where_another_is_taken_out() -> None:
    shm = {"name": "shm", "mountPath": "/dev/shm"}
    on = mounting("/data/models")
    on["spec"]["volumes"].append({"name": "shm", "emptyDir": {}})
    on["spec"]["containers"][0]["volumeMounts"] = [shm, READ_ONLY]
    on["spec"]["initContainers"] = [container("init", volumeMounts=[MOUNT | {"name": "shm"}, READ_ONLY])]
    made = mutated(on, LISTED)
    mounts = {one["name"]: one for one in only_container(made)["volumeMounts"]}
    assert mounts["data"]["recursiveReadOnly"] == "IfPossible"
    assert "shm" not in mounts
    of_init = made["spec"]["initContainers"][0]["volumeMounts"]
    assert [one.get("recursiveReadOnly") for one in of_init] == [None, "IfPossible"]


@pytest.mark.parametrize("kind", ["Socket", "BlockDevice", "CharDevice"])
def test_only_files_and_directories_are_mounted(kind: str) -> None:
    assert f"of type {kind}" in denied(mounting("/scratch", type=kind), LISTED).message


def test_a_path_is_made_only_where_it_is_writable() -> None:
    granted(mounting("/scratch", mount=MOUNT, type="DirectoryOrCreate"), LISTED)
    assert "Write type: Directory." in denied(mounting("/data/models", type="DirectoryOrCreate"), LISTED).message


def added(mount: dict[str, Any], path: str = "/data/models") -> Added | Denied:
    before = mounting(path)
    before["metadata"]["annotations"][GRANT_ANNOTATION] = "{}"
    after = msgspec.convert(
        before | {"spec": before["spec"] | {"ephemeralContainers": [container("debug", volumeMounts=[mount])]}}, Pod
    )
    decision = decide_on_added(after, msgspec.convert(before, Pod), "team", LISTED)
    assert isinstance(decision, Added | Denied)
    return decision


def test_an_ephemeral_container_may_read_what_is_read_only_and_no_more() -> None:
    denial = added(MOUNT)
    assert isinstance(denial, Denied)
    assert 'Container "debug" mounts "data" writable' in denial.message
    made = added(READ_ONLY)
    assert isinstance(made, Added)
    assert next(one.path for one in hiding(made)) == "/spec/ephemeralContainers/0/volumeMounts/0/recursiveReadOnly"
    assert isinstance(added(MOUNT, "/scratch"), Added)


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
        "writable"
        if path in writable
        else "in a writable path"
        if above & writable
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


def test_a_list_of_too_many_paths_says_how_many_there_may_be(tmp_path: Path) -> None:
    listed = "".join(f"- path: /data/m{number}\n" for number in range(103))
    (said,) = problems(tmp_path, team=f"hostPaths:\n{listed}")
    assert said.endswith("expected a list with at most 100 items, got a list: take out 3 of its 103 items")
