from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from policies.grant import Grant
from policies.policy_set import PolicySet
from tests.policies.pods import container, decided, limited, mutated, pod, policies
from tests.webhook.golden_files import EXAMPLES, GOLDEN, made

OLDEST, *_, NEWEST = kubernetes_validate.utils.all_versions()
PLACED = """\
placement:
  nodeSelector: {example.com/gpu: shared}
  tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
  runtimeClassName: nvidia
  schedulerName: packer
"""
FULL = [
    pod("0.2"),
    pod(None, limited(quantity=2)),
    pod("0.2", container(image="tensorflow/serving", args=[]), container("b"), initContainers=[container("i")]),
    pod("0.2", container(image="nvidia/jax", env=[{"name": "A", "value": "b"}], volumeMounts=[])),
    pod("0.2", initContainers=[container("i", restartPolicy="Always")], nodeSelector={"a": "b"}, tolerations=[]),
    pod("1", container("a", env=[]), container("b"), initContainers=[container("i")]),
]


def validate(document: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example.stem))
def test_the_preview_of_an_example_is_the_golden_file(example: Path) -> None:
    for name, text in made(example).items():
        assert (GOLDEN / name).read_text() == text


def test_there_is_no_golden_file_without_an_example() -> None:
    expected = {name for example in EXAMPLES for name in made(example)}
    assert {file.name for file in GOLDEN.iterdir()} == expected
    assert len(EXAMPLES) >= 7


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_examples_are_valid_before_and_after(version: str) -> None:
    for example in EXAMPLES:
        validate(yaml.safe_load(example.read_text()), version)
        validate(yaml.safe_load((GOLDEN / f"{example.stem}.yaml").read_text()), version)


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize(
    "by",
    [
        policies(),
        policies(PLACED),
        policies(PLACED + "strategy: time-slicing"),
        policies(PLACED + "share: {whole: gpus}"),
    ],
)
def test_a_mutated_pod_is_valid(by: PolicySet, version: str) -> None:
    valid = [before for before in FULL if _is_valid(before, version) and isinstance(decided(before, by), Grant)]
    assert len(valid) >= 3  # sidecars are newer than the oldest version, and time-slicing refuses the limit
    for before in valid:
        validate(mutated(before, by), version)


def _is_valid(document: dict[str, Any], version: str) -> bool:
    try:
        validate(document, version)
    except kubernetes_validate.ValidationError:
        return False
    return True


def test_validation_would_notice() -> None:
    broken = pod("0.2")
    broken["spec"]["hostIPC"] = "true"
    with pytest.raises(kubernetes_validate.ValidationError):
        validate(broken, NEWEST)
