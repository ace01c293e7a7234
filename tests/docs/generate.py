"""
Generate the tables of README.md: `python -m tests.docs.generate` writes them, `--check` says if they are out of date.

They stand between comments `<!-- name -->` and `<!-- end of name -->`.
"""

import re
import sys
from pathlib import Path

from policies.frameworks.catalogue import BUILT_IN
from policies.reading.reference import framework_table, table

README = Path(__file__).parents[2] / "README.md"


def main() -> int:
    written = README.read_text()
    wanted = written
    for name, text in (
        ("policy fields", table("Policy")),
        ("cluster fields", table("Cluster")),
        ("frameworks", framework_table(BUILT_IN)),
    ):
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        wanted = between.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", wanted)  # type: ignore[misc] # bound at once
    if "--check" in sys.argv[1:]:
        if wanted != written:
            sys.stderr.write("README.md: the tables are out of date: run make documents\n")
            return 1
        return 0
    README.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
