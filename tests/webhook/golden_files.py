"""
What `preview` makes of the examples, kept as files so that a change of it is seen.

After a change that is meant: `.venv/bin/python -m tests.webhook.golden_files`, and read the difference.
"""

from pathlib import Path

from click.testing import CliRunner

from gpu_share import main

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
EXAMPLES = sorted((ROOT / "policies" / "examples").glob("*.yaml"))


def made(example: Path) -> dict[str, str]:
    """By golden file: what it should hold for *example*."""
    shown = {output: _preview(example, output) for output in ("yaml", "explain")}
    return {f"{example.stem}.yaml": shown["yaml"], f"{example.stem}.txt": shown["explain"]}


def _preview(example: Path, output: str) -> str:
    policies = str(ROOT / "policies" / "files")
    return CliRunner().invoke(main, ["preview", str(example), "--policies", policies, "-o", output]).stdout


if __name__ == "__main__":
    for each in EXAMPLES:
        for name, text in made(each).items():
            (GOLDEN / name).write_text(text)
