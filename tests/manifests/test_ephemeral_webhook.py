"""When the API server calls the webhook for ephemeral containers, and what follows while it cannot."""

from policies import contract
from tests.manifests.admission import BASE, NAMESPACE_NAME, selects, stored, webhooks
from tests.policies.pods import mutated, pod

WEBHOOK = webhooks(BASE)[contract.EPHEMERAL_WEBHOOK_NAME]


def test_it_is_called_for_ephemeral_containers_alone() -> None:
    (rule,) = WEBHOOK["rules"]
    assert rule["operations"] == ["UPDATE"]
    assert rule["resources"] == ["pods/ephemeralcontainers"]


def test_a_granted_pod_is_selected_by_its_label_and_no_other_pod_costs_more_than_a_look_at_its_labels() -> None:
    assert selects(WEBHOOK["objectSelector"], stored(mutated(pod("0.2")))["metadata"]["labels"])
    assert not selects(WEBHOOK["objectSelector"], {})
    assert not selects(WEBHOOK["objectSelector"], {"app": "a"})
    assert "matchConditions" not in WEBHOOK


def test_pods_can_be_debugged_while_the_webhook_is_down() -> None:
    # The policy gpu-share-changes says then which variable to set.
    assert WEBHOOK["failurePolicy"] == "Ignore"
    assert WEBHOOK["timeoutSeconds"] <= 3


def test_exempt_namespaces_are_exempt() -> None:
    assert not selects(WEBHOOK["namespaceSelector"], {NAMESPACE_NAME: "kube-system"})
    assert selects(WEBHOOK["namespaceSelector"], {NAMESPACE_NAME: "team"})
