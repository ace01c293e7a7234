"""What a pass does about rights, conflicts and answers that keep it from its work: over HTTP, by the real client."""

import logging
from itertools import count

import pytest
from kubernetes import client

from certs.cluster import Cluster
from certs.errors import ClusterError
from policies.contract import CA_SECRET, SERVING_SECRET, WEBHOOK_CONFIGURATION, WEBHOOK_NAME, WEBHOOK_NAMES
from program.api_client import api_client
from program.login import Credential, CredentialError, Login
from tests.certs.api_transports import client_in_memory
from tests.certs.pass_over_http import PERMISSIONS, emptied, run
from tests.certs.simulated_api_server import Call, RejectedError, SimulatedApiServer
from tests.certs.simulated_cluster import configuration


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


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "token"), (409, "log"), (429, "log of the API server"), (500, "log")]
)
def test_any_other_rejection_is_one_line(server: SimulatedApiServer, cluster: Cluster, status: int, hint: str) -> None:
    def reject(_: Call) -> None:
        raise RejectedError(status, "not\nnow" + "\n!" * 3_000_000)

    server.before = reject
    with pytest.raises(ClusterError, match=rf"^cannot get mutating\S* gpu-share: not now .*{hint}") as caught:
        run(cluster)
    assert len(str(caught.value)) < 1000


def test_an_unreachable_api_server_is_one_line() -> None:
    with (
        client.ApiClient(client.Configuration(host="http://127.0.0.1:9")) as api,
        pytest.raises(
            ClusterError, match=r"^cannot get mutating.*: the API server cannot be reached: [^\n]*$"
        ) as caught,
    ):
        run(Cluster(api, namespace="gpu-share"))
    assert str(caught.value).endswith(": check its address and the network")


def test_a_user_who_cannot_sign_in_any_more_is_one_line() -> None:
    answers = iter([Credential(due=0, end=0)])

    def source() -> Credential:
        for one in answers:
            return one
        raise CredentialError("the credential plugin login failed with exit code 1: the session has ended")

    times = count(1000.0, 60.0)
    login = Login(source, clock=lambda: next(times))
    with (
        api_client(client.Configuration(host="http://127.0.0.1:1"), login) as api,
        pytest.raises(
            ClusterError, match=r"cannot get mutatingwebhook.*: the credential plugin login failed with exit"
        ),
    ):
        Cluster(api, namespace="gpu-share").read()
