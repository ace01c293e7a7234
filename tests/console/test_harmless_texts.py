"""No text moves a terminal's cursor: no name of the user's own, and nothing of a pod that is explained."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from gpu_share import main
from tests.console.explained import explain, known
from tests.console.objects import node, pending
from tests.console.stand_in import StandIn, status_of
from tests.console.test_doctor import installed

Asked = Callable[..., Any]
NAME = "team\x1b[31m\x9b\u202e"
SHOWN = "team?[31m??"


def denying() -> StandIn:
    """A cluster of which the user sees nothing that is in a namespace, and in which pods may not be tried."""
    on = installed()
    on.forbidden = {"pods", "events", "resourcequotas", "deployments"}
    may_not = status_of(403, 'User "x" cannot create resource "pods" in API group ""')
    on.posted = {f"/api/v1/namespaces/{one}/pods": may_not for one in (NAME, SHOWN)}
    return on


@pytest.mark.parametrize("make", [installed, denying])
@pytest.mark.parametrize(
    "words",
    [
        *(["explain", "x", "-n", NAME], ["explain", "deploy/x", "-n", NAME], ["explain", f"deploy/{NAME}"]),
        ["doctor", "--context", NAME],
        *(["top", "--once", "-n", NAME], ["top", "--once", "-o", "wide", "-n", NAME], ["doctor", "-n", NAME]),
    ],
)
def test_names_on_a_command_line_are_cleaned(asked: Asked, make: Callable[[], StandIn], words: list[str]) -> None:
    told = asked(make(), *words).output
    assert set(NAME) & set(told) <= set("team[31m")
    assert all(one.isprintable() for one in told.splitlines())


@pytest.mark.parametrize("spaces", [" ", "\t\n", "\u2003"])
@pytest.mark.parametrize("words", [["top", "--once"], ["explain", "x"], ["doctor"], ["console"]])
def test_spaces_are_no_namespace_and_do_not_stand_for_all_of_them(asked: Asked, words: list[str], spaces: str) -> None:
    ended = asked(installed(), *words, "-n", spaces)
    assert (ended.exit_code, f"{spaces!a}: expected a name, got spaces" in ended.output) == (2, True)


@pytest.mark.parametrize("dots", [".", ".."])
@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["top", "--once", "-n", "{}"], 0, "pods with a share in namespace {}: nothing has the name . or .."),
        (["explain", "{}"], 1, ""),
        (["explain", "deploy/{}"], 1, ""),
        (["explain", "x", "-n", "{}"], 1, "nothing has the name . or .."),
        (["doctor", "-n", "{}"], 0, "nothing has the name . or .."),
    ],
)
def test_no_name_leads_to_another_path(asked: Asked, dots: str, words: list[str], code: int, told: str) -> None:
    known = installed()
    ended = asked(known, *(one.format(dots) for one in words))
    assert (ended.exit_code, told.format(dots) in " ".join(ended.output.split())) == (code, True), ended.output
    assert (
        not {"/api/v1/pods", "/api/v1/namespaces"} & {one.partition("?")[0] for one in known.asked} or "doctor" in words
    )


def test_the_namespace_of_a_kubeconfig_is_cleaned(served: Callable[[StandIn], Path]) -> None:
    file = served(denying())
    config = yaml.safe_load(file.read_text())
    config["contexts"][0]["context"]["namespace"] = NAME
    file.write_text(yaml.safe_dump(config))
    told = CliRunner().invoke(main, ["doctor", "--kubeconfig", str(file)]).output
    assert f"the right to create pods in namespace {SHOWN} is missing" in told


def test_labels_that_a_pod_wants_are_cleaned(asked: Asked) -> None:
    pod = pending("late", "0.2", "0/1 nodes are available")
    pod["spec"]["nodeSelector"] = {NAME: "\n  x\x07"}
    on = known(pod)
    on.lists["/api/v1/nodes"] = [node("gpu-a")]
    assert f"it lacks the label {SHOWN}= x?" in explain(asked, on, "late")
