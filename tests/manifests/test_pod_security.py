"""The API server tells the webhook by its path where Pod Security forbids hostIPC and hostPath volumes."""

from copy import deepcopy
from pathlib import Path

import pytest

from policies import contract
from tests.manifests.admission import NAMESPACE_NAME, selects, webhooks
from tests.manifests.installations import each_installation
from tests.manifests.render import Object, render

ENFORCE = "pod-security.kubernetes.io/enforce"
NAMES = (contract.WEBHOOK_NAME, contract.RESTRICTED_WEBHOOK_NAME)


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({}, contract.WEBHOOK_NAME),
        ({ENFORCE: "privileged"}, contract.WEBHOOK_NAME),
        ({ENFORCE: "baseline"}, contract.RESTRICTED_WEBHOOK_NAME),
        ({ENFORCE: "restricted"}, contract.RESTRICTED_WEBHOOK_NAME),
        # Where nothing is denied, nothing is different.
        ({"pod-security.kubernetes.io/warn": "restricted"}, contract.WEBHOOK_NAME),
        ({"pod-security.kubernetes.io/audit": "baseline"}, contract.WEBHOOK_NAME),
        ({ENFORCE: "baseline", "gpu-share.dev/mode": "warn"}, contract.RESTRICTED_WEBHOOK_NAME),
    ],
)
@each_installation
def test_every_namespace_has_one_of_the_two_webhooks(directory: Path, labels: dict[str, str], name: str) -> None:
    found = webhooks(render(directory))
    of_team = labels | {NAMESPACE_NAME: "team"}
    assert [one for one in NAMES if selects(found[one]["namespaceSelector"], of_team)] == [name]
    exempt = labels | {NAMESPACE_NAME: "kube-system"}
    assert not any(selects(found[one]["namespaceSelector"], exempt) for one in NAMES)


@each_installation
def test_the_two_webhooks_differ_in_name_path_and_namespaces_alone(directory: Path) -> None:
    def without(webhook: Object) -> Object:
        rest = deepcopy(webhook)
        del rest["name"], rest["namespaceSelector"], rest["clientConfig"]["service"]["path"]
        return rest

    first, second = (without(webhooks(render(directory))[name]) for name in NAMES)
    assert first == second
