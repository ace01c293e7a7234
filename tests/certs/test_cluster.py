"""The real client against the stand-in, over HTTP."""

import logging
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from kubernetes import client

from certs.cluster import Cluster, ClusterError
from certs.ensure import ensure
from policies.contract import AUTHORITY_SECRET, SERVING_SECRET, WEBHOOK_CONFIGURATION, WEBHOOK_NAME
from tests.certs.api_transports import client_in_memory, over_http
from tests.certs.simulated_api_server import ApiServer, Call, RefusedError
from tests.certs.simulated_cluster import RULES, World, configuration

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
RIGHTS = {
    "create secrets",
    f"get secrets {SERVING_SECRET}",
    f"patch secrets {SERVING_SECRET}",
    f"get secrets {AUTHORITY_SECRET}",
    f"patch secrets {AUTHORITY_SECRET}",
    f"get mutatingwebhookconfigurations {WEBHOOK_CONFIGURATION}",
    f"patch mutatingwebhookconfigurations {WEBHOOK_CONFIGURATION}",
}


@pytest.fixture
def server() -> ApiServer:
    server = ApiServer(rights=set(RIGHTS))
    server.put(WEBHOOK_CONFIGURATION, configuration())
    return server


@pytest.fixture
def cluster(server: ApiServer) -> Iterator[Cluster]:
    with over_http(server) as url, client.ApiClient(client.Configuration(host=url)) as api:
        yield Cluster(api, namespace="gpu-share")


def run(cluster: Cluster, *, now: datetime = NOW) -> None:
    ensure(cluster, RULES, clock=lambda: now)


def writes(server: ApiServer) -> list[str]:
    return [str(call) for call, _, _ in server.calls if call.verb != "get"]


def emptied(server: ApiServer) -> None:
    """Empty both Secrets, so that they are patched and not created."""
    for name, kind in ((SERVING_SECRET, "Opaque"), (AUTHORITY_SECRET, "Opaque")):
        server.put(name, {"type": kind, "data": {"note": "a2VlcCBtZQ=="}, "metadata": {"labels": {"team": "a"}}})


def test_a_first_pass_creates_two_secrets_and_patches_the_bundle(server: ApiServer, cluster: Cluster) -> None:
    run(cluster)
    assert writes(server) == [
        "create secrets",
        f"patch mutatingwebhookconfigurations {WEBHOOK_CONFIGURATION}",
        f"patch secrets {AUTHORITY_SECRET}",
        "create secrets",
        f"patch secrets {AUTHORITY_SECRET}",
    ]
    serving, authority = server.objects[SERVING_SECRET], server.objects[AUTHORITY_SECRET]
    assert (serving["type"], set(serving["data"])) == ("kubernetes.io/tls", {"tls.crt", "tls.key"})
    assert (authority["type"], set(authority["data"])) == ("Opaque", {"ca.crt", "ca.key"})
    assert authority["metadata"]["labels"] == serving["metadata"]["labels"]


def test_nothing_but_our_bundle_changes_in_the_configuration(server: ApiServer, cluster: Cluster) -> None:
    run(cluster)
    webhooks = server.objects[WEBHOOK_CONFIGURATION]["webhooks"]
    bundle = webhooks[1]["clientConfig"].pop("caBundle")
    assert webhooks == configuration()["webhooks"]
    assert bundle == server.objects[AUTHORITY_SECRET]["data"]["ca.crt"]


def test_secrets_that_are_there_keep_whatever_else_is_in_them(server: ApiServer, cluster: Cluster) -> None:
    emptied(server)
    run(cluster)
    for name, entries in ((SERVING_SECRET, {"tls.crt", "tls.key"}), (AUTHORITY_SECRET, {"ca.crt", "ca.key"})):
        found = server.objects[name]
        assert found["metadata"]["labels"] == {"team": "a"}
        assert set(found["data"]) == {"note", *entries}


def test_every_patch_is_a_strategic_merge_that_names_the_version_it_read(server: ApiServer, cluster: Cluster) -> None:
    emptied(server)
    run(cluster)
    patches = [(content_type, content) for call, content_type, content in server.calls if call.verb == "patch"]
    assert len(patches) == 5
    for content_type, content in patches:
        assert content_type == "application/strategic-merge-patch+json"
        assert int(content["metadata"]["resourceVersion"]) > 0
        assert "type" not in content


def test_an_old_authority_is_taken_out_of_its_secret() -> None:
    world = World()
    world.run()
    world.put_secret(AUTHORITY_SECRET, world.secret(AUTHORITY_SECRET) | {"old.crt": b"x", "old.key": b"y"})
    world.pass_time(RULES.settle)
    world.run()
    assert set(world.secret(AUTHORITY_SECRET)) == {"ca.crt", "ca.key"}


def test_a_pass_with_nothing_to_write_reads_three_objects(server: ApiServer, cluster: Cluster) -> None:
    run(cluster)
    server.calls.clear()
    run(cluster)
    assert [str(call) for call, _, _ in server.calls] == [
        f"get mutatingwebhookconfigurations {WEBHOOK_CONFIGURATION}",
        f"get secrets {SERVING_SECRET}",
        f"get secrets {AUTHORITY_SECRET}",
    ]


@pytest.mark.parametrize("right", sorted(RIGHTS))
@pytest.mark.parametrize("secrets_are_there", [False, True])
def test_a_missing_right_is_named_in_one_line(
    server: ApiServer, cluster: Cluster, right: str, *, secrets_are_there: bool
) -> None:
    if secrets_are_there:
        emptied(server)
    assert server.rights is not None
    server.rights.remove(right)
    if right == f"patch secrets {SERVING_SECRET}" and not secrets_are_there:
        run(cluster)  # it is created, and patched at the next renewal
        return
    if right == "create secrets" and secrets_are_there:
        run(cluster)
        return
    with pytest.raises(ClusterError) as caught:
        run(cluster)
    assert str(caught.value).startswith(f"cannot {right}")
    assert "give the right" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_someone_who_is_quicker_makes_a_pass_look_again(
    server: ApiServer, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    emptied(server)
    once: set[str] = set()

    def change_first(call: Call) -> None:
        if call.verb == "patch" and str(call) not in once:
            once.add(str(call))
            server.put(call.name, {**server.objects[call.name], "changed": "meanwhile"})

    server.before = change_first
    caplog.set_level(logging.INFO)
    run(cluster)
    assert len(once) == 3
    assert [record.message for record in caplog.records].count("someone was quicker, looking again") == 3
    assert all(server.objects[name]["changed"] == "meanwhile" for name in (SERVING_SECRET, AUTHORITY_SECRET))


def test_an_object_that_is_deleted_before_its_patch_is_created(server: ApiServer, cluster: Cluster) -> None:
    emptied(server)
    server.before = lambda call: (
        server.put(SERVING_SECRET, None) if str(call) == f"patch secrets {SERVING_SECRET}" else None
    )
    run(cluster)
    assert server.objects[SERVING_SECRET]["type"] == "kubernetes.io/tls"


def test_a_pass_gives_up_when_others_never_stop(server: ApiServer, cluster: Cluster) -> None:
    emptied(server)
    server.before = lambda call: server.put(call.name, server.objects[call.name]) if call.verb == "patch" else None
    with pytest.raises(ClusterError, match="others change the same objects"):
        run(cluster)


def test_without_the_webhook_the_secrets_are_made_and_the_pass_fails(server: ApiServer, cluster: Cluster) -> None:
    server.put(WEBHOOK_CONFIGURATION, None)
    with pytest.raises(ClusterError, match=f"no webhook {WEBHOOK_NAME}.*apply the manifests"):
        run(cluster)
    assert {SERVING_SECRET, AUTHORITY_SECRET} <= server.objects.keys()
    server.put(WEBHOOK_CONFIGURATION, configuration())
    run(cluster)


def test_a_configuration_with_other_webhooks_alone_is_left_as_it_is(server: ApiServer, cluster: Cluster) -> None:
    others = configuration()
    del others["webhooks"][1]
    server.put(WEBHOOK_CONFIGURATION, others)
    with pytest.raises(ClusterError, match=f"no webhook {WEBHOOK_NAME}"):
        run(cluster)
    assert len(server.objects[WEBHOOK_CONFIGURATION]["webhooks"]) == 2


def test_an_immutable_secret_is_named_with_the_way_out(server: ApiServer, cluster: Cluster) -> None:
    server.put(SERVING_SECRET, {"type": "Opaque", "immutable": True, "data": {}})
    with pytest.raises(ClusterError, match=f"^cannot patch secrets {SERVING_SECRET}: .*immutable.*delete it"):
        run(cluster)


def test_a_namespace_that_is_not_there_is_named(server: ApiServer) -> None:
    cluster = Cluster(client_in_memory(server), namespace="elsewhere")
    with pytest.raises(ClusterError, match=r'"elsewhere" not found: create the namespace first$'):
        run(cluster)


@pytest.mark.parametrize(("status", "hint"), [(401, "token"), (429, "log of the API server"), (500, "log")])
def test_any_other_refusal_is_one_line(server: ApiServer, cluster: Cluster, status: int, hint: str) -> None:
    def refuse(_: Call) -> None:
        raise RefusedError(status, "not\nnow")

    server.before = refuse
    with pytest.raises(ClusterError, match=rf"^cannot get mutating\S* gpu-share: not now: .*{hint}"):
        run(cluster)


def test_an_api_server_that_is_not_there_is_one_line() -> None:
    with (
        client.ApiClient(client.Configuration(host="http://127.0.0.1:9")) as api,
        pytest.raises(ClusterError, match=r"^cannot get mutating.*: the API server cannot be reached: [^\n]*$"),
    ):
        run(Cluster(api, namespace="gpu-share"))


def test_a_key_is_never_logged(server: ApiServer, cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    run(cluster)
    keys = [server.objects[AUTHORITY_SECRET]["data"]["ca.key"], server.objects[SERVING_SECRET]["data"]["tls.key"]]
    lines = "\n".join(str(vars(record)) for record in caplog.records)
    assert "written" in lines
    for key in keys:
        assert key not in lines
        assert b64decode(key).decode() not in lines


def test_the_clock_is_read_after_the_objects_so_that_no_time_is_recorded_too_early(
    server: ApiServer, cluster: Cluster
) -> None:
    def clock() -> datetime:
        assert str(server.calls[-1][0]) == f"get secrets {AUTHORITY_SECRET}"
        return NOW

    ensure(cluster, RULES, clock=clock)
