"""Whether a framework was told its share, in pods as the webhook makes them."""

import json

import jsonpatch
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.cluster_policies import in_force
from console.doctor.framework_memory import is_told
from console.doctor.report import AFTER, findings
from console.objects import Pod
from console.words import as_shown
from policies import pod as rules
from policies.decision import decide
from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.framework import Framework
from policies.grant import Grant
from tests.console.wrong import of_workloads
from webhook.patch import operations

FRAMEWORKS = [one for one in BUILT_IN if one.images]


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=[one.name for one in FRAMEWORKS])
@pytest.mark.parametrize("tag", ["", ":2.12.0"])  # one of which says the version that a setting needs
def test_a_framework_was_told_its_share_unless_the_webhook_warned_that_it_was_not(
    framework: Framework, tag: str
) -> None:
    policies, _ = in_force({"_cluster.yaml": b"", "_default.yaml": b"strategy: time-slicing\n"})
    assert policies is not None
    image = framework.images[0].replace("*", "x") + tag
    container = {"name": "main", "image": image, "args": ["--verbose"]}
    written = {"metadata": {"annotations": {"gpu-share": "0.2"}}, "spec": {"containers": [container]}}
    pod = msgspec.convert(written, rules.Pod)
    decision = decide(pod, "team", policies)
    assert isinstance(decision, Grant)
    made = jsonpatch.apply_patch(written, json.loads(msgspec.json.encode(operations(pod, decision))))
    (granted,) = msgspec.convert(made, Pod, dec_hook=as_shown).spec.containers
    assert is_told(granted, 200, policies.catalogue) is not bool(decision.warnings)
    assert not is_told(granted, 100, policies.catalogue)


VLLM = "vllm serve m --gpu-memory-utilization=0.2"


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["sh", "-c", f"# start the server\nexec {VLLM}"], "ok"),
        (["sh", "-c", "sleep 1\n" * 400 + VLLM], "ok"),
        (["sh", "-c", f"{VLLM} # as\tever"], "ok"),
        (["sh", "-c", f"# {VLLM}\nexec vllm serve m"], "warning"),
        ([*VLLM.split(), "--speculative-config", '{"method": "ngram"}'], "ok"),
        (["echo", "[hello]"], "warning"),
        (["echo", '{"a": "\u202e"}', "\x00\ud800"], "warning"),
    ],
)
def test_what_a_framework_was_told_is_read_as_it_is_written(command: list[str], status: str) -> None:
    (found,) = (one for one in findings(of_workloads.sliced(*command), AFTER) if one.check == "within-share")
    assert found.status == status


@settings(max_examples=30)
@given(st.lists(st.text() | st.from_regex(r"[{\[].*[}\]]"), max_size=4))
def test_no_argument_keeps_other_checks_from_being_made(arguments: list[str]) -> None:
    assert [one.check for one in findings(of_workloads.sliced(*arguments), AFTER)] == [
        one.name for _, checks in AFTER for one in checks
    ]
