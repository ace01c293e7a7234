"""What Knative takes in a template only where its administrator says so is told of where it is written."""

import pytest
import yaml

from tests.webhook.commands import preview
from tests.webhook.preview.custom_resources import CUSTOM

SAID = "Knative denies {} unless {} is enabled in its ConfigMap config-features"


@pytest.mark.parametrize("kind", ["Service", "Configuration"])
def test_hostipc_and_a_hostpath_volume_that_are_written_need_features_of_knative(kind: str) -> None:
    result = preview(CUSTOM[kind].text, "-o", "yaml")
    assert SAID.format("hostIPC", "kubernetes.podspec-hostipc") in result.stderr
    assert SAID.format("a hostPath volume", "kubernetes.podspec-volumes-hostpath") in result.stderr
    again = preview(result.stdout, "-o", "yaml")
    assert "Knative" not in again.stderr
    assert again.stdout == result.stdout


def test_nothing_is_said_of_what_is_not_written() -> None:
    text = CUSTOM["Service"].text
    untouched = yaml.safe_load(text)
    del untouched["spec"]["template"]["metadata"]
    assert "Knative" not in preview(yaml.safe_dump(untouched), "-o", "yaml").stderr
    for output in ("explain", "diff"):
        made = preview(text, "-o", output)
        assert "Knative" not in made.stdout + made.stderr


def test_two_containers_keep_their_names_and_one_is_the_container_of_the_user() -> None:
    assert '"user-container" asks for 0.2' in preview(CUSTOM["Service"].text).stdout
    named = CUSTOM["Service"].text.replace("{image: app}", "{name: mine, image: app}")
    assert '"mine" asks for 0.2' in preview(named).stdout
