"""What is said to be left of a value by a pattern is what dash and bash leave of it, or a mark that allows it."""

import shutil
import subprocess
from itertools import product

import pytest

from policies.frameworks.expansion import A_VALUE, ANYTHING
from policies.frameworks.shell.patterns import DASHED, part_of

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
VALUES = ["", "a", "-a", "a-b", "a-b-c", "x/y.tar.gz", "/x/-y", "--gpu-x", "-", "a--b", "9-"]
PATTERNS = ["-", "*-", "-*", "*/", "/*", ".*", "*.", "a", "*a", "b*", ".gz", "*", "?", "[a-]", "*-*", "x", "*x", "--"]
CASES = [(value, f"{sign}{pattern}") for value, sign, pattern in product(VALUES, ("#", "##", "%", "%%"), PATTERNS)]


@pytest.mark.parametrize("shell", SHELLS)
def test_what_a_pattern_leaves_is_what_a_shell_leaves(shell: str) -> None:
    text = "\n".join(f"V='{value}'; echo \"=${{V{pattern}}}\"" for value, pattern in CASES)
    ran = subprocess.run([shell, "-c", text], capture_output=True, text=True, check=True, timeout=30).stdout.split("\n")
    for (value, pattern), line in zip(CASES, ran, strict=False):
        (left,) = part_of([value], [pattern], is_number=False)
        result = line.removeprefix("=")
        assert left in (result, DASHED, ANYTHING) or (left == A_VALUE and not result.startswith("-")), (value, pattern)


def test_what_is_cut_from_words_is_told_where_it_can_be() -> None:
    assert part_of(["x/y.tar.gz"], ["##*/", "%.gz", "%%.*", "#x/"], is_number=False) == ["y.tar.gz", "x/y.tar", "x/y"]
    assert part_of([A_VALUE], ["##*-", "%-*"], is_number=False) == [A_VALUE]
    assert part_of([A_VALUE], ["%9"], is_number=True) == [DASHED]
    assert part_of(["a b"], ["#a"], is_number=False) == [ANYTHING]
