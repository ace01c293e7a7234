"""A variable of several settings in a document in JSON, where the settings end with their text."""

from typing import Any

import pytest

from tests.policies.frameworks.test_list_variables import LIST, SLICED, TORCH, C, M
from tests.policies.pods import container, denied, granted, pod

DOCUMENTS = {  # in which the value is followed by another member, by the end of a list, or by that of a text in a text
    "a member": '{"env": [{"name": "NAME", "value": "VALUE"}], "resources": {}}',
    "a member without spaces": '{"env":[{"name":"NAME","value":"VALUE"}],"resources":{}}',
    "a list": '{"env": ["NAME=VALUE"], "resources": {"limits": {}}}',
    "a key": '{"env_vars": {"NAME": "VALUE", "LR": "1e-4"}, "pip": {}}',
    "in a text": r'{"spec": "{\"name\": \"NAME\", \"value\": \"VALUE\", \"a\": {}}"}',
}


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
@pytest.mark.parametrize("value", ["expandable_segments:True", f"{LIST},{M}0.1"])
def test_in_a_document_a_list_ends_with_its_text(document: str, value: str) -> None:
    assert granted(in_document(document, value), SLICED).warnings == ()


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
@pytest.mark.parametrize("value", [f"{LIST},{M}0.9", f"{M}0.9", f"{M}0.9,a:1"])
def test_what_is_above_the_share_in_it_is_denied(document: str, value: str) -> None:
    assert denied(in_document(document, value), SLICED).code == "MemoryArgumentAboveShare"


def in_document(document: str, value: str) -> dict[str, Any]:
    spec = {"name": "SPEC", "value": document.replace("NAME", C).replace("VALUE", value)}
    return pod("0.2", container(image=TORCH, env=[{"name": C, "value": f"{M}0.1"}, spec]))
