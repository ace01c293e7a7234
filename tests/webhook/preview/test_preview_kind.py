"""`preview` says whether a pod gets vGPUs or whole GPUs, and which line of which file says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.policies.pods import GPU, VGPU, container, limited, pod
from tests.webhook.commands import preview

TWO = pod("1", container("a"), container("b"), annotations={"container.gpu-share.dev/b": "0.5"})
MANY = "maximum: '4', podMaximum: '4'"
KINDS = ("The pod gets whole GPUs", "A whole GPU is allocated as", "One of its shares is a part", "A limit names")


def explained(on: dict[str, Any], rules: str, directory: Path, code: int = 0) -> str:
    (directory / "_default.yaml").write_text(f"mode: enforce\nshare: {{{rules}}}")
    (directory / "_cluster.yaml").write_text("vgpusPerGpu: 10")
    return preview(json.dumps(on), "--policies", directory, code=code).stdout


@pytest.mark.parametrize(
    ("on", "rules", "says"),
    [
        (pod("1"), f"whole: gpus, {MANY}", "The pod gets whole GPUs, since all its shares are whole numbers"),
        (pod(None, limited(quantity=2, resource=GPU)), f"whole: gpus, {MANY}", "The pod gets whole GPUs, since all"),
        (pod("1"), f"whole: vgpus, {MANY}", "A whole GPU is allocated as all its vGPUs here"),
        (pod(None, limited(quantity=10)), f"whole: vgpus, {MANY}", "A whole GPU is allocated as all its vGPUs here"),
        (TWO, f"whole: gpus, {MANY}", "One of its shares is a part of a GPU, so the pod gets vGPUs for all"),
        (pod(None, limited(quantity=10)), f"whole: gpus, {MANY}", f"A limit names {VGPU}, so the pod gets vGPUs"),
        (pod("1", limited(quantity=10)), f"whole: gpus, {MANY}", f"A limit names {VGPU}, so the pod gets vGPUs"),
    ],
)
def test_the_kind_is_said_with_the_line_that_decides(on: dict[str, Any], rules: str, says: str, tmp_path: Path) -> None:
    (line,) = [line for line in explained(on, rules, tmp_path).splitlines() if line.strip().startswith(KINDS)]
    value = rules.partition(",")[0].removeprefix("whole: ")
    assert line.strip().startswith(says)
    assert line.endswith(f"(share.whole: {value}, _default.yaml:2).")


@pytest.mark.parametrize("on", [pod("0.2"), pod("0.95"), pod(None, limited(quantity=3))])
@pytest.mark.parametrize("rules", ["whole: gpus", "whole: vgpus"])
def test_nothing_is_said_of_kinds_where_no_whole_gpu_is_asked_for(
    on: dict[str, Any], rules: str, tmp_path: Path
) -> None:
    assert not any(kind in explained(on, rules, tmp_path) for kind in KINDS)


def test_a_built_in_default_is_called_so(tmp_path: Path) -> None:
    assert "(share.whole: vgpus, built-in default)." in explained(pod("1"), "", tmp_path)


@pytest.mark.parametrize(
    ("on", "says"),
    [
        (pod("2"), ['"main" asks for 2 of a GPU by gpu-share', f"Whole GPUs: 2 x {GPU}."]),
        (pod(None, limited(quantity=1, resource=GPU)), [f'"main" asks for 1 whole GPU by its limit {GPU}']),
        (pod(None, limited(quantity=2, resource=GPU)), [f'"main" asks for 2 whole GPUs by its limit {GPU}']),
    ],
)
def test_a_whole_gpu_is_not_counted_in_vgpus(on: dict[str, Any], says: list[str], tmp_path: Path) -> None:
    text = explained(on, f"whole: gpus, {MANY}", tmp_path)
    assert all(words in text for words in says)
    assert "Nobody else is on them: no MPS, no limits" in text
    for words in ("vGPUs", "hostIPC", "time-sliced", "memory:"):
        assert words not in text


def test_a_denial_names_the_line_that_decides(tmp_path: Path) -> None:
    text = explained(pod(None, limited(quantity=1, resource=GPU)), "whole: vgpus", tmp_path, code=1)
    assert "(_default.yaml:2). Ask for 10 gpu-share.dev/vgpu for each GPU" in text
