"""The attempts of tests/bypass on a real API server: with the webhook, and with its admission policies alone."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain

import pytest

from tests.bypass.attempt import ANNOTATIONS, Attempt, forged
from tests.cluster.api import Answer, Api
from tests.cluster.attempts import ATTEMPTS, RULES
from tests.cluster.cluster import Cluster, eventually
from tests.cluster.installation import Installation
from tests.cluster.pods import Place

CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/gpu-share"
CLIENTS = 4
OFF = "gpu-share.test/webhook"  # a label for namespaces that our webhook does not see
BY_WEBHOOK = 'admission webhook "pods.gpu-share.dev" denied the request'
BY_POLICY = "ValidatingAdmissionPolicy 'gpu-share'"


# docs/operations.md: the admission policy cannot tell a grant that a user wrote, and that fits, from the webhook's own.
FITTING = tuple(
    f"a forged grant of a {what} with its limit" for what in ("whole GPU", "size of DRA", "MIG instance", "device")
)
UNGRANTED = [one for one in ATTEMPTS if one.by != "policy" and one.name not in FITTING][
    ::10
]  # one rule denies them all


@pytest.fixture(scope="module")
def seen(first: Installation) -> Iterator[dict[str, Place]]:
    """Give a namespace for each set of rules, of whose annotations `gpu-share doctor` would warn afterwards."""
    names = {**RULES, "": "rules-0"}
    yield {rules: Place.make(first.cluster, name, annotations=ANNOTATIONS) for rules, name in names.items()}
    for name in {*names.values()}:
        first.cluster.api.ask("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="module")
def answers(seen: dict[str, Place]) -> dict[str, Answer]:
    """Give what the webhook and the API server say to each attempt, by its name; some clients ask at once."""

    def asked(attempts: list[Attempt]) -> dict[str, Answer]:
        with closing(Api()) as api:
            return {one.name: api.create(one.pod, seen[one.rules].name, dry_run=True) for one in attempts}

    by_webhook = [one for one in ATTEMPTS if one.by != "policy"]
    with ThreadPoolExecutor(CLIENTS) as clients:
        parts = clients.map(asked, (by_webhook[number::CLIENTS] for number in range(CLIENTS)))
        return dict(chain.from_iterable(part.items() for part in parts))


@pytest.fixture(scope="module")
def unseen(first: Installation, cluster: Cluster) -> Iterator[Place]:
    """Give a namespace that has the admission policies alone."""
    selectors = cluster.api.get(CONFIGURATION)["webhooks"][0]["namespaceSelector"]["matchExpressions"]
    path = "/webhooks/0/namespaceSelector/matchExpressions/-"
    hide = [{"op": "add", "path": path, "value": {"key": OFF, "operator": "DoesNotExist"}}]
    cluster.api.ask("PATCH", CONFIGURATION, hide)
    place = Place.make(cluster, "no-webhook", {OFF: "true"}, ANNOTATIONS)
    eventually(
        lambda: BY_POLICY in place.create(pod_that_asks(), dry_run=True).message, what="the webhook sees nothing"
    )
    yield place
    back = [{"op": "replace", "path": path.removesuffix("/-"), "value": selectors}]
    cluster.api.ask("PATCH", CONFIGURATION, back)
    place.remove()
    assert first.overlay


def pod_that_asks() -> dict[str, object]:
    return next(one.pod for one in ATTEMPTS if one.by == "webhook")


def is_no_pod(answer: Answer) -> bool:
    """Whether the API server cannot take this for a pod at all, whoever sends it."""
    return answer.status in (400, 422) and BY_WEBHOOK not in answer.message


@pytest.mark.parametrize("attempt", [one for one in ATTEMPTS if one.by == "webhook"], ids=lambda one: one.name)
def test_the_webhook_denies(answers: dict[str, Answer], attempt: Attempt) -> None:
    said = answers[attempt.name]
    assert not said.ok
    if not is_no_pod(said):
        assert BY_WEBHOOK in said.message
        assert said.reason == attempt.code


@pytest.mark.parametrize("attempt", [one for one in ATTEMPTS if one.by == "harmless"], ids=lambda one: one.name)
def test_what_is_harmless_is_admitted(answers: dict[str, Answer], attempt: Attempt) -> None:
    said = answers[attempt.name]
    assert said.ok, said.message


@pytest.mark.parametrize("attempt", [one for one in ATTEMPTS if one.by == "policy"], ids=lambda one: one.name)
def test_the_admission_policy_denies_what_comes_after_the_webhook(unseen: Place, attempt: Attempt) -> None:
    answer = unseen.create(attempt.pod, dry_run=True)
    assert not answer.ok
    if not is_no_pod(answer):
        assert BY_POLICY in answer.message
        assert attempt.says in answer.message


@pytest.mark.parametrize("attempt", UNGRANTED, ids=lambda one: one.name)
def test_the_admission_policy_alone_admits_no_request_for_a_share(unseen: Place, attempt: Attempt) -> None:
    answer = unseen.create(attempt.pod, dry_run=True)
    assert not answer.ok
    if not is_no_pod(answer):
        assert BY_POLICY in answer.message


def test_the_admission_policy_alone_admits_a_pod_as_the_webhook_makes_it(unseen: Place) -> None:
    answer = unseen.create(forged(), dry_run=True)
    assert answer.ok, answer.message


def test_most_attempts_are_pods_for_the_api_server(answers: dict[str, Answer]) -> None:
    denied = [answers[one.name] for one in ATTEMPTS if one.by == "webhook"]
    assert sum(is_no_pod(one) for one in denied) < len(denied) / 10
