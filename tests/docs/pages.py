"""The documents, and what stands in them: console examples, links and headings."""

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

# What preview says on standard error of policies and namespaces, however right a file is.
_OF_ALL_FILES = ("gpu-share: policies: ", "gpu-share: whether Pod Security enforces ")
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_CONSOLE = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
_GENERATED = re.compile(r"^<!-- (?P<name>[a-z ]+) -->\n.*?^<!-- end of (?P=name) -->$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Example:
    """A command of a console block, and the output that the page shows below it."""

    command: str
    output: str


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def examples(text: str) -> list[Example]:
    """Find the commands of all console blocks."""
    return [example for block in _CONSOLE.findall(text) for example in _commands(block)]


def with_outputs(text: str) -> str:
    """Write the output of each command anew."""
    return _CONSOLE.sub(lambda block: "".join(f"$ {one.command}\n{run(one)}" for one in _commands(block[0])), text)


def _commands(block: str) -> list[Example]:
    before, *parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    assert not before, f"a console block begins with a command, got {before!r}"
    return [Example(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def run(example: Example) -> str:
    """Run one of the project's own commands at the root of the repository, and return its standard output."""
    program, *arguments = shlex.split(example.command)
    assert program == "gpu-share", f"a console block runs gpu-share, and not {program}"
    ran = subprocess.run(
        [sys.executable, "-m", "gpu_share", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    said = [line for line in ran.stderr.splitlines() if not line.startswith(_OF_ALL_FILES)]
    assert not said, ran.stderr
    return ran.stdout


def prose(text: str) -> str:
    """Leave out what nobody wrote by hand for this page: blocks of code and output, and generated parts."""
    return _FENCED.sub("", _GENERATED.sub("", text))


def anchors(text: str) -> set[str]:
    """Find what a link with # can name, as GitHub spells it."""
    headings = re.findall(r"^#+ (.*)$", _FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
