"""The commands that the pages tell a reader to type, as they are written there."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def commands(page: str, section: str = "") -> list[str]:
    """
    Give the commands of *page*, or of its *section*: the one whose heading begins so. Comments are left out.

    Raises:
        AssertionError: If there is no such section, or it has no commands.
    """
    text = (DOCS / page).read_text()
    if section:
        found = re.search(rf"^(#+) {re.escape(section)}.*?\n(.*?)(?=^\1 |^## |\Z)", text, re.MULTILINE | re.DOTALL)
        assert found, f"{page} has no section that begins with {section!r}"
        text = found[2]
    blocks = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [re.sub(r"\s+#.*", "", line).strip() for block in blocks for line in block.splitlines()]
    assert any(lines), f"{page}, {section!r}, tells no commands"
    return [line for line in lines if line]


def command(page: str, section: str, beginning: str) -> str:
    """
    Give the one command of *section* that begins with *beginning*.

    Raises:
        AssertionError: If there is none, or more than one.
    """
    (found,) = [line for line in commands(page, section) if line.startswith(beginning)]
    return found
