"""Labels that a kustomization of one's own writes over ours make neither `doctor` nor `top` blind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import Result

from console.look import OURS
from tests.console.objects import gpu, part, state, tell
from tests.console.stand_in import StandIn
from tests.console.test_doctor import installed
from tests.manifests.installations import each_installation
from tests.manifests.render import Object, render, templates

Asked = Callable[..., Result]
Shown = Callable[..., Any]
_PODS = "/api/v1/namespaces/gpu-share/pods"
_MAPS = "/api/v1/namespaces/gpu-share/configmaps"
WRITTEN_OVER = {"part-of": "ml-platform", "managed-by": "flux", "version": "2.4.0"}


def of_own_labels(*components: str) -> StandIn:
    """An installation whose pods, or those of *components* alone, have labels of the administrator's."""
    known = installed()
    for one in known.lists[_PODS]:
        labels = one["metadata"]["labels"]
        if not components or labels["app.kubernetes.io/component"] in components:
            labels |= {f"app.kubernetes.io/{name}": value for name, value in WRITTEN_OVER.items()}
    return known


@pytest.fixture
def own(tmp_path: Path) -> Callable[[Path], list[Object]]:
    """Render an installation with labels of the administrator's."""

    def make(installation: Path) -> list[Object]:
        (tmp_path / "gpu-share").symlink_to(installation)
        pairs = {f"app.kubernetes.io/{name}": value for name, value in WRITTEN_OVER.items()}
        kustomization = {"resources": ["gpu-share"], "labels": [{"pairs": pairs, "includeTemplates": True}]}
        (tmp_path / "kustomization.yaml").write_bytes(msgspec.yaml.encode(kustomization))
        return render(tmp_path)

    return make


@each_installation
def test_our_pods_are_listed_by_what_the_selectors_of_their_workloads_have(
    directory: Path, own: Callable[[Path], list[Object]]
) -> None:
    name, _, value = OURS.partition("=")
    objects = own(directory)
    for (kind, _, workload), template in templates(objects).items():
        (made,) = (one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, workload))
        assert template["metadata"]["labels"]["app.kubernetes.io/part-of"] == "ml-platform"
        assert template["metadata"]["labels"][name] == made["spec"]["selector"]["matchLabels"][name] == value


def test_doctor_and_top_see_what_has_labels_of_others(asked: Asked, shown: Shown) -> None:
    on = of_own_labels()
    assert {one["status"] for one in shown(on, "doctor")} <= {"ok", "not-applicable"}
    assert "2 GPUs" in asked(on, "top", "--once").stdout


def broken(on: StandIn, shown: Shown) -> Any:
    on.lists[_MAPS][0]["data"]["team-vision.yaml"] = "shares: {maximum: '0.5'}\n"
    return {one["check"]: one for one in shown(on, "doctor")}["policies-valid"]


def test_a_version_that_is_on_all_pods_and_not_what_a_node_runs_is_no_newer_one(shown: Shown) -> None:
    assert broken(of_own_labels(), shown)["status"] == "failure"


def test_where_no_node_says_what_it_runs_the_label_counts(shown: Shown) -> None:
    on = of_own_labels()
    on.states.clear()
    found = broken(on, shown)
    assert (found["status"], "gpu-share-webhook-gpu-a runs gpu-share 2.4.0" in str(found["found"])) == ("unknown", True)


@pytest.mark.parametrize("labelled", [("webhook", "mps"), ("webhook",)])
def test_a_label_that_no_node_contradicts_counts(shown: Shown, labelled: tuple[str, ...]) -> None:
    assert broken(of_own_labels(*labelled), shown)["status"] == "unknown"


def test_a_plugin_that_is_about_to_end_contradicts_no_label_of_the_next(shown: Shown) -> None:
    on = of_own_labels()
    ending = part("gpu-a", "plugin")
    ending["metadata"] |= {"name": "gpu-share-plugin-old", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    ending["metadata"]["labels"]["app.kubernetes.io/version"] = state(gpu()).program
    on.lists[_PODS].append(ending)
    tell(on, state(gpu(), gpu(index=1)))
    assert broken(on, shown)["status"] == "unknown"
