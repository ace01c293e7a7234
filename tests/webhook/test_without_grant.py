"""Each way in which a pod comes to ask for a share without a grant gets the message that names that way."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policies import contract
from tests.manifests.admission import BASE, policy, selects, stored, webhook_conditions
from tests.manifests.granted_pods import one
from tests.manifests.render import Object
from tests.policies.pods import container, limited, pod
from tests.webhook import serving
from tests.webhook.reviews import call, patched
from tests.webhook.serving import Server

POLICY = policy(BASE)
WEBHOOK = webhook_conditions(BASE)
BEGINS = "The pod asks for a GPU share or claims one, but gpu-share granted it none"


@pytest.fixture(scope="module")
def warning_server(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A webhook whose policy says that shares up to a half are granted, and warns of others."""
    directory = tmp_path_factory.mktemp("warning")
    (directory / "_default.yaml").write_text('mode: warn\nshare: {maximum: "0.5"}\n')
    server = serving.start(directory, certificates, directory / "stderr")
    yield server
    server.interrupt()


def only(on: Object) -> str:
    (said,) = POLICY.denials(stored(on))
    assert said.startswith(BEGINS)
    return said


def binding_of(labels: dict[str, str]) -> list[str]:
    """What the API server does with a pod that the policy `gpu-share` denies, in a namespace with these labels."""
    (actions,) = (
        spec["validationActions"]
        for spec in (one["spec"] for one in BASE if one["kind"] == "ValidatingAdmissionPolicyBinding")
        if spec["policyName"] == "gpu-share" and selects(spec["matchResources"]["namespaceSelector"], labels)
    )
    found: list[str] = actions
    return found


def admitted(server: Server, on: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    with server.caller() as caller:
        status, text = caller.ask("POST", contract.MUTATE_PATH, json.dumps(call(on)).encode())
    assert status == 200
    response = json.loads(text)["response"]
    assert response["allowed"]
    return patched(on, response), response.get("warnings", [])


@pytest.mark.parametrize("on", [pod("0.9"), pod("0,2"), pod(None, limited(quantity=9))])
def test_a_namespace_in_mode_warn_without_its_label(warning_server: Server, on: dict[str, Any]) -> None:
    after, warnings = admitted(warning_server, on)
    assert after == on
    assert "would be denied with" in " ".join(warnings)
    assert "mode: warn has its namespace label gpu-share.dev/mode=warn" in only(after)
    assert binding_of({}) == ["Deny"]
    assert binding_of({contract.MODE_LABEL: "warn"}) == ["Warn", "Audit"]


@pytest.mark.parametrize(
    "on",
    [
        pod("0.2"),
        pod("0.2", container("a"), container("b"), annotations={contract.DEFAULT_CONTAINER_ANNOTATION: "b"}),
        pod(None, limited()),
        pod(None, annotations={"container.gpu-share.dev/main": "0.2"}),
    ],
)
def test_a_webhook_configuration_that_was_removed(on: dict[str, Any]) -> None:
    assert "check that its webhook is configured for the namespace" in only(on)


@pytest.mark.parametrize(
    "request_", [{"gpu-share": "0.2"}, {"gpu-share.dev/share": "0.2"}, {"container.gpu-share.dev/main": "0.2"}]
)
def test_an_annotation_that_a_later_webhook_adds(request_: dict[str, str]) -> None:
    on = stored(pod(None))
    assert not WEBHOOK.matches(on)  # so it is not called again when the other webhook has changed the pod
    on["metadata"]["annotations"] |= request_
    assert "no later webhook adds the request" in only(on)


def test_a_later_webhook_that_removes_the_grant() -> None:
    on = one("one, attached by the node")
    del on["metadata"]["annotations"][contract.GRANT_ANNOTATION]
    only(on)


@pytest.mark.parametrize("value", ["true", "false"])
def test_the_owner_of_a_pod_with_the_label_alone_is_told_to_remove_it(value: str) -> None:
    on = pod(None, annotations={"example.com/other": "x"})
    on["metadata"]["labels"] = {contract.SHARED_LABEL: value}
    (said,) = POLICY.denials(stored(on))
    assert said.endswith("asks for none: remove the label, or ask for a share with the annotation gpu-share.")
    asking = ("gpu-share", "gpu-share.dev/share", "container.gpu-share.dev/main")
    for annotations in ({key: "0.2"} for key in asking):
        only(on | {"metadata": on["metadata"] | {"annotations": annotations}})
    only(on | {"metadata": on["metadata"] | {"annotations": {contract.GRANT_ANNOTATION: ""}}})
    only(on | {"spec": pod(None, limited())["spec"]})
