"""What a pass reads and writes: the real client and the simulated API server, over HTTP."""

import logging
from base64 import b64decode
from datetime import datetime

import pytest

from certs.cluster import Cluster
from certs.ensure import ensure
from policies.contract import CA_SECRET, SERVING_SECRET, WEBHOOK_CONFIGURATION, WEBHOOK_NAMES
from tests.certs.pass_over_http import emptied, run
from tests.certs.rotation_states import NOW
from tests.certs.simulated_api_server import SimulatedApiServer
from tests.certs.simulated_cluster import SETTINGS, SimulatedCluster, configuration


def writes(server: SimulatedApiServer) -> list[str]:
    return [str(call) for call, _, _ in server.calls if call.verb != "get"]


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
