"""What `gpu-share policy check` says of entries that take the place of a built-in framework."""

from pathlib import Path

import pytest

from tests.webhook.test_policy_warnings import warnings

VLLM = """
frameworks:
- name: NAME
  source: s
  memory:
    of: total
    spellings:
    - {argument: --gpu-memory-utilization, shortest: --gp}
    - {argument: --device-memory-utilization, shortest: --device-m}
    overriddenBy:
    - {argument: --kv-cache-memory-bytes, shortest: --kv-cache-m, source: s}
    - {argument: --num-gpu-blocks-override, shortest: --num-g, source: s}
    - {argument: --config, general: true, source: s}
"""


@pytest.mark.parametrize(
    ("part", "instead", "lost"),
    [
        (", shortest: --gp", "", "--gpu-memory-utilization"),
        (", general: true", "", "--config"),
        ("of: total", "of: free", "--gpu-memory-utilization, --device-memory-utilization"),
        ("    - {argument: --config, general: true, source: s}\n", "", "--config"),
        (
            "    - {argument: --num-gpu-blocks-override, shortest: --num-g, source: s}\n",
            "",
            "--num-gpu-blocks-override",
        ),
    ],
)
def test_an_entry_that_replaces_a_framework_and_judges_otherwise_is_named(
    tmp_path: Path, part: str, instead: str, lost: str
) -> None:
    assert warnings(tmp_path, **{"_default.yaml": "", "_cluster.yaml": VLLM.replace("NAME", "vllm")}) == []
    without = VLLM.replace(part, instead)
    (line,) = warnings(tmp_path, **{"_cluster.yaml": without.replace("NAME", "vllm")})
    assert line == (
        f"/_cluster.yaml: warning: frameworks: the entry vllm replaces the built-in one, of which {lost} are judged no "
        "longer, or otherwise: give the entry another name, and both are there"
    )
    assert warnings(tmp_path, **{"_cluster.yaml": without.replace("NAME", "own-vllm")}) == []
