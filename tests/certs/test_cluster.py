"""The real client and the simulated API server, over HTTP."""

import logging
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from kubernetes import client

from certs.cluster import Cluster
from certs.ensure import ensure
from certs.errors import ClusterError
from policies.contract import CA_SECRET, SERVING_SECRET, WEBHOOK_CONFIGURATION, WEBHOOK_NAME, WEBHOOK_NAMES
from tests.certs.api_transports import client_in_memory, over_http
from tests.certs.simulated_api_server import Call, RejectedError, SimulatedApiServer
from tests.certs.simulated_cluster import SETTINGS, SimulatedCluster, configuration

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
PERMISSIONS = {
    "create secrets",
    f"get secrets {SERVING_SECRET}",
    f"patch secrets {SERVING_SECRET}",
    f"get secrets {CA_SECRET}",
    f"patch secrets {CA_SECRET}",
    f"get mutatingwebhookconfigurations {WEBHOOK_CONFIGURATION}",
    f"patch mutatingwebhookconfigurations {WEBHOOK_CONFIGURATION}",
}


@pytest.fixture
def server() -> SimulatedApiServer:
    server = SimulatedApiServer(permissions=set(PERMISSIONS))
    server.put(WEBHOOK_CONFIGURATION, configuration())
    return server


@pytest.fixture
def cluster(server: SimulatedApiServer) -> Iterator[Cluster]:
    with over_http(server) as url, client.ApiClient(client.Configuration(host=url)) as api:
        yield Cluster(api, namespace="gpu-share")


def run(cluster: Cluster, *, now: datetime = NOW) -> None:
    ensure(cluster, SETTINGS, clock=lambda: now)


def writes(server: SimulatedApiServer) -> list[str]:
    return [str(call) for call, _, _ in server.calls if call.verb != "get"]


def emptied(server: SimulatedApiServer) -> None:
    """Empty both Secrets, so that they are patched and not created."""
    for name, kind in ((SERVING_SECRET, "Opaque"), (CA_SECRET, "Opaque")):
        server.put(name, {"type": kind, "data": {"note": "a2VlcCBtZQ=="}, "metadata": {"labels": {"team": "a"}}})


def test_a_first_pass_creates_two_secrets_and_patches_the_bundle(server: SimulatedApiServer, cluster: Cluster) -> None:
    run(cluster)
    assert writes(server) == [
        "create secrets",
        f"patch mutatingwebhookconfigurations {WEBHOOK_CONFIGURATION}",
        f"patch secrets {CA_SECRET}",
        "create secrets",
        f"patch secrets {CA_SECRET}",
    ]
    serving, ca = server.objects[SERVING_SECRET], server.objects[CA_SECRET]
    assert (serving["type"], set(serving["data"])) == ("kubernetes.io/tls", {"tls.crt", "tls.key"})
    assert (ca["type"], set(ca["data"])) == ("Opaque", {"ca.crt", "ca.key"})
    assert ca["metadata"]["labels"] == serving["metadata"]["labels"]


def test_only_our_ca_bundle_changes_in_the_webhook_configuration(server: SimulatedApiServer, cluster: Cluster) -> None:
    run(cluster)
    webhooks = server.objects[WEBHOOK_CONFIGURATION]["webhooks"]
    bundles = [webhook["clientConfig"].pop("caBundle") for webhook in webhooks[1 : 1 + len(WEBHOOK_NAMES)]]
    assert webhooks == configuration()["webhooks"]
    assert set(bundles) == {server.objects[CA_SECRET]["data"]["ca.crt"]}


@pytest.mark.parametrize("missing", WEBHOOK_NAMES)
def test_a_webhook_that_an_upgrade_adds_gets_the_bundle_of_the_others(
    server: SimulatedApiServer, cluster: Cluster, missing: str
) -> None:
    older = configuration()
    older["webhooks"] = [webhook for webhook in older["webhooks"] if webhook["name"] != missing]
    server.put(WEBHOOK_CONFIGURATION, older)
    run(cluster)
    published = server.objects[WEBHOOK_CONFIGURATION]["webhooks"]
    assert missing not in {webhook["name"] for webhook in published}
    by_name = {webhook["name"]: webhook for webhook in configuration()["webhooks"] + published}
    server.put(WEBHOOK_CONFIGURATION, older | {"webhooks": list(by_name.values())})
    serving = server.objects[SERVING_SECRET]["data"]
    run(cluster)
    after = {one["name"]: one["clientConfig"] for one in server.objects[WEBHOOK_CONFIGURATION]["webhooks"]}
    assert {after[name]["caBundle"] for name in WEBHOOK_NAMES} == {server.objects[CA_SECRET]["data"]["ca.crt"]}
    assert server.objects[SERVING_SECRET]["data"] == serving


def test_existing_secrets_keep_their_other_entries_and_labels(server: SimulatedApiServer, cluster: Cluster) -> None:
    emptied(server)
    run(cluster)
    for name, entries in ((SERVING_SECRET, {"tls.crt", "tls.key"}), (CA_SECRET, {"ca.crt", "ca.key"})):
        found = server.objects[name]
        assert found["metadata"]["labels"] == {"team": "a"}
        assert set(found["data"]) == {"note", *entries}


def test_every_patch_is_a_strategic_merge_that_names_the_version_it_read(
    server: SimulatedApiServer, cluster: Cluster
) -> None:
    emptied(server)
    run(cluster)
    patches = [(content_type, content) for call, content_type, content in server.calls if call.verb == "patch"]
    assert len(patches) == 5
    for content_type, content in patches:
        assert content_type == "application/strategic-merge-patch+json"
        assert int(content["metadata"]["resourceVersion"]) > 0
        assert "type" not in content


def test_an_old_ca_is_deleted_from_its_secret() -> None:
    cluster = SimulatedCluster()
    cluster.run()
    cluster.put_secret(CA_SECRET, cluster.secret(CA_SECRET) | {"old.crt": b"x", "old.key": b"y"})
    cluster.pass_time(SETTINGS.settle)
    cluster.run()
    assert set(cluster.secret(CA_SECRET)) == {"ca.crt", "ca.key"}


def test_a_pass_with_nothing_to_write_reads_three_objects(server: SimulatedApiServer, cluster: Cluster) -> None:
    run(cluster)
    server.calls.clear()
    run(cluster)
    assert [str(call) for call, _, _ in server.calls] == [
        f"get mutatingwebhookconfigurations {WEBHOOK_CONFIGURATION}",
        f"get secrets {SERVING_SECRET}",
        f"get secrets {CA_SECRET}",
    ]


@pytest.mark.parametrize("permission", sorted(PERMISSIONS))
@pytest.mark.parametrize("secrets_are_there", [False, True])
def test_a_missing_permission_is_named_in_one_line(
    server: SimulatedApiServer, cluster: Cluster, permission: str, *, secrets_are_there: bool
) -> None:
    if secrets_are_there:
        emptied(server)
    assert server.permissions is not None
    server.permissions.remove(permission)
    if permission == f"patch secrets {SERVING_SECRET}" and not secrets_are_there:
        run(cluster)  # it is created now, and patched at the next renewal
        return
    if permission == "create secrets" and secrets_are_there:
        run(cluster)
        return
    with pytest.raises(ClusterError) as caught:
        run(cluster)
    assert str(caught.value).startswith(f"cannot {permission}")
    assert "grant the permission" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_conflict_makes_a_pass_read_again(
    server: SimulatedApiServer, cluster: Cluster, caplog: pytest.LogCaptureFixture
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
    assert [record.message for record in caplog.records].count("another client changed the object, reading again") == 3
    assert all(server.objects[name]["changed"] == "meanwhile" for name in (SERVING_SECRET, CA_SECRET))


def test_an_object_that_is_deleted_before_its_patch_is_created(server: SimulatedApiServer, cluster: Cluster) -> None:
    emptied(server)
    server.before = lambda call: (
        server.put(SERVING_SECRET, None) if str(call) == f"patch secrets {SERVING_SECRET}" else None
    )
    run(cluster)
    assert server.objects[SERVING_SECRET]["type"] == "kubernetes.io/tls"


def test_a_pass_gives_up_when_other_clients_keep_changing_the_objects(
    server: SimulatedApiServer, cluster: Cluster
) -> None:
    emptied(server)
    server.before = lambda call: server.put(call.name, server.objects[call.name]) if call.verb == "patch" else None
    with pytest.raises(ClusterError, match="other clients keep changing the same objects"):
        run(cluster)


def test_without_the_webhook_the_secrets_are_created_and_the_pass_fails(
    server: SimulatedApiServer, cluster: Cluster
) -> None:
    server.put(WEBHOOK_CONFIGURATION, None)
    with pytest.raises(ClusterError, match=f"no webhook {WEBHOOK_NAME}.*apply the manifests"):
        run(cluster)
    assert {SERVING_SECRET, CA_SECRET} <= server.objects.keys()
    server.put(WEBHOOK_CONFIGURATION, configuration())
    run(cluster)


def test_a_configuration_with_only_other_webhooks_is_not_changed(server: SimulatedApiServer, cluster: Cluster) -> None:
    others = configuration()
    others["webhooks"] = [webhook for webhook in others["webhooks"] if webhook["name"] not in WEBHOOK_NAMES]
    server.put(WEBHOOK_CONFIGURATION, others)
    with pytest.raises(ClusterError, match=f"no webhook {WEBHOOK_NAME}"):
        run(cluster)
    assert len(server.objects[WEBHOOK_CONFIGURATION]["webhooks"]) == 2


def test_an_immutable_secret_is_named_with_what_to_do(server: SimulatedApiServer, cluster: Cluster) -> None:
    server.put(SERVING_SECRET, {"type": "Opaque", "immutable": True, "data": {}})
    with pytest.raises(ClusterError, match=f"^cannot patch secrets {SERVING_SECRET}: .*immutable.*delete it"):
        run(cluster)


def test_a_namespace_that_does_not_exist_is_named(server: SimulatedApiServer) -> None:
    cluster = Cluster(client_in_memory(server), namespace="elsewhere")
    with pytest.raises(ClusterError, match=r'"elsewhere" not found: create the namespace first$'):
        run(cluster)


@pytest.mark.parametrize(("status", "hint"), [(401, "token"), (429, "log of the API server"), (500, "log")])
def test_any_other_rejection_is_one_line(server: SimulatedApiServer, cluster: Cluster, status: int, hint: str) -> None:
    def reject(_: Call) -> None:
        raise RejectedError(status, "not\nnow")

    server.before = reject
    with pytest.raises(ClusterError, match=rf"^cannot get mutating\S* gpu-share: not now: .*{hint}"):
        run(cluster)


def test_an_unreachable_api_server_is_one_line() -> None:
    with (
        client.ApiClient(client.Configuration(host="http://127.0.0.1:9")) as api,
        pytest.raises(
            ClusterError, match=r"^cannot get mutating.*: the API server cannot be reached: [^\n]*$"
        ) as caught,
    ):
        run(Cluster(api, namespace="gpu-share"))
    assert str(caught.value).endswith(": check its address and the network")


def test_a_key_is_never_logged(server: SimulatedApiServer, cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    run(cluster)
    keys = [server.objects[CA_SECRET]["data"]["ca.key"], server.objects[SERVING_SECRET]["data"]["tls.key"]]
    lines = "\n".join(str(vars(record)) for record in caplog.records)
    assert "written" in lines
    for key in keys:
        assert key not in lines
        assert b64decode(key).decode() not in lines


def test_the_clock_is_read_after_the_objects_so_that_no_time_is_recorded_too_early(
    server: SimulatedApiServer, cluster: Cluster
) -> None:
    def clock() -> datetime:
        assert str(server.calls[-1][0]) == f"get secrets {CA_SECRET}"
        return NOW

    ensure(cluster, SETTINGS, clock=clock)
