"""What a pod with a share may mount of the paths that its policy lists."""

from typing import Any

import msgspec
import pytest

from policies.contract import GRANT_ANNOTATION
from policies.ephemeral import decide_on_added
from policies.grant import Added, Denied
from policies.pod import Pod
from tests.policies.pods import container, denied, granted, mutated, only_container, pod, policies
from webhook.patch import hiding

LISTED = policies("hostPaths:\n- {path: /data/models}\n- {path: /scratch, writable: true}")
MOUNT = {"name": "data", "mountPath": "/data"}
READ_ONLY = MOUNT | {"readOnly": True}


def mounting(path: str, *, mount: dict[str, Any] = READ_ONLY, **host: Any) -> dict[str, Any]:
    volume = {"name": "data", "hostPath": {"path": path, **host}}
    return pod("0.2", container(volumeMounts=[mount]), volumes=[volume])


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


def test_who_lists_what_is_in_a_writable_path_of_another_is_told_which_and_what_helps() -> None:
    by = policies(team="hostPaths: [{path: /data/models}]", other="hostPaths: [{path: /data, writable: true}]")
    assert denied(mounting("/data/models"), by, "team").message == (
        'The volume "data" is the node\'s "/data/models", which may be a link, since pods may write to "/data" '
        "(other.yaml:1). Ask the administrator to list /data here too, and mount that with subPath."
    )
    assert denied(mounting("/data/models"), by, "other").message.endswith(
        "(other.yaml:1). Mount the path that is listed, and what lies in it by subPath."
    )


def test_a_writable_path_in_one_that_others_may_write_is_no_hostpath_either() -> None:
    by = policies(
        team="hostPaths: [{path: /data/sub, writable: true}]", other="hostPaths: [{path: /data, writable: true}]"
    )
    assert "may be a link" in denied(mounting("/data/sub", mount=MOUNT), by, "team").message
    granted(mounting("/data", mount=MOUNT), by, "other")


def test_who_does_not_list_a_path_is_not_told_who_may_write_there() -> None:
    by = policies(team="hostPaths: [{path: /models}]", other="hostPaths: [{path: /data, writable: true}]")
    message = denied(mounting("/data/a"), by, "team").message
    assert "hostPaths of the policy does not list (team.yaml:1)" in message
    assert "other" not in message


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
