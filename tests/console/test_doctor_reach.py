"""What `gpu-share doctor` takes as it is of webhooks and bindings that are not written as they are shipped."""

import pytest

from console.doctor.of_reach import asked
from console.doctor.verdict import OK
from tests.console.installations import installation, webhook


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
