"""What `gpu-share doctor` takes as it is of webhooks and bindings that are not written as they are shipped."""

import pytest

from console.doctor.of_reach import asked
from console.doctor.verdict import OK
from console.seen import Unseen
from tests.console.installations import installation, namespace, webhook
from tests.console.wrong.of_trials import tried

_WARN = {"key": "gpu-share.dev/mode", "operator": "In", "values": ["warn"]}


def test_a_service_without_a_port_is_asked_at_443() -> None:
    made = webhook()
    hooks = []
    for one in made.webhooks:
        service = one.client_config.service
        assert service is not None
        assert str(service) == f"https://gpu-share-webhook.gpu-share.svc{service.path}"
        without = {"namespace": service.namespace, "name": service.name, "path": service.path}
        hooks.append(webhook(name=one.name, clientConfig={"caBundle": "", "service": without}).webhooks[0])
    assert [one.client_config.service for one in hooks] == [one.client_config.service for one in made.webhooks]


@pytest.mark.parametrize("versions", [["v1"], ["v1", "v1beta1"], ["v2", "v1"], []])
def test_a_webhook_that_is_asked_in_v1_can_answer(versions: list[str]) -> None:
    assert asked(installation(webhook=webhook(admissionReviewVersions=versions))) == OK


@pytest.mark.parametrize(
    "selector",
    [{}, {"matchLabels": {"gpu-share.dev/mode": "warn"}}, {"matchExpressions": [_WARN]}],
)
def test_a_binding_that_warns_in_namespaces_with_the_label_is_enough(selector: dict[str, object]) -> None:
    assert (
        asked(tried({"validationActions": ["Audit", "Warn"], "matchResources": {"namespaceSelector": selector}})) == OK
    )


def test_the_actions_may_be_those_of_two_bindings() -> None:
    assert asked(tried({"validationActions": ["Warn"]}, {"validationActions": ["Audit"]})) == OK


def test_where_no_namespace_has_the_label_nothing_needs_to_warn() -> None:
    labels = {"gpu-share.dev/mode": "enforce"}
    for there in (
        namespace("team-vision", labels=labels),
        namespace("kube-system", labels={"gpu-share.dev/mode": "warn"}),
    ):
        assert asked(tried(**there)) == OK


def test_where_namespaces_cannot_be_seen_it_is_unknown_whether_a_binding_is_missed() -> None:
    hidden = {"namespaces": Unseen(what="namespaces", why="it is forbidden", right="list namespaces")}
    assert asked(tried(namespaces=None, unseen=hidden)).right == "list namespaces"
    assert asked(installation(namespaces=None, unseen=hidden)) == OK
