"""The alerts of the component for Prometheus, by its own tool."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from certs import metrics as certs_metrics
from plugin.telemetry.metrics import MPS_METRICS, PLUGIN_METRICS
from tests.manifests.render import MANIFESTS
from webhook import metrics as webhook_metrics

COMPONENT = MANIFESTS / "components" / "monitoring"
TESTS = sorted(Path(__file__).parent.glob("rules_*test.yaml"))
FREE = (0.4, 0.8, 1)  # of nodes of which the second is cordoned, and the third not Ready
PROMTOOL = shutil.which("promtool")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """Write the rules as Prometheus reads them, without what the Operator wants around them."""
    if PROMTOOL is None:
        pytest.skip("there is no promtool here: apt-get install prometheus")
    written = tmp_path / "rules.yaml"
    written.write_text(yaml.safe_dump(yaml.safe_load((COMPONENT / "rules.yaml").read_text())["spec"]))
    for tests in TESTS:
        shutil.copy(tests, tmp_path)
    return written


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(PROMTOOL), *arguments], capture_output=True, text=True, check=False)


def test_prometheus_accepts_the_rules(rules: Path) -> None:
    checked = promtool("check", "rules", "--lint-fatal", str(rules))
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.exhaustive
@pytest.mark.parametrize("tests", TESTS, ids=lambda tests: str(tests.stem))
def test_each_alert_comes_when_it_should_and_not_otherwise(rules: Path, tests: Path) -> None:
    tested = promtool("test", "rules", str(rules.with_name(tests.name)))
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_the_dashboard_leaves_nodes_out_to_which_no_new_pod_comes(rules: Path) -> None:
    panels = json.loads((COMPONENT / "gpu-share.json").read_text())["panels"]
    (query,) = (one["targets"][0]["expr"] for one in panels if one["title"] == "Largest share that fits")
    free = {
        f'gpu_share_gpu_largest_free_ratio{{node="{node}"}}': value for node, value in zip("abc", FREE, strict=True)
    }
    of_nodes = {'kube_node_spec_unschedulable{node="b"}': 1} | {
        f'kube_node_status_condition{{node="{node}", condition="Ready", status="true"}}': int(node != "c")
        for node in "abc"
    }
    tests = [
        {
            "input_series": [{"series": name, "values": str(value)} for name, value in series.items()],
            "promql_expr_test": [
                {"expr": query.replace("$node", ".*"), "eval_time": "0m", "exp_samples": [{"value": fits}]}
            ],
        }
        for series, fits in ((free, max(FREE)), (free | of_nodes, FREE[0]))
    ]
    written = rules.with_name("dashboard_test.yaml")
    written.write_text(yaml.safe_dump({"rule_files": [], "tests": tests}))
    tested = promtool("test", "rules", str(written))
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_alert_has_a_test() -> None:
    rules = yaml.safe_load((COMPONENT / "rules.yaml").read_text())["spec"]["groups"][0]["rules"]
    text = "".join(tests.read_text() for tests in TESTS)
    assert [rule["alert"] for rule in rules if rule["alert"] not in text] == []


def test_alerts_and_dashboard_ask_for_metrics_that_a_part_has() -> None:
    listed = (*PLUGIN_METRICS, *MPS_METRICS, *webhook_metrics.METRICS, *certs_metrics.METRICS)
    known = {one.name for one in listed} | {f"{one.name}_bucket" for one in listed if one.kind == "histogram"}
    asked = {
        name
        for path in (COMPONENT / "rules.yaml", COMPONENT / "gpu-share.json")
        for name in re.findall(r"\bgpu_share_[a-z_]+(?=[{)[, ])", path.read_text())
    }
    assert asked >= {"gpu_share_gpu_healthy", "gpu_share_reviews_total"}
    assert asked <= known
