"""`make bench`: what the admission path costs, as ratios within one run. Nothing here passes or fails."""

import sys
import tempfile
from pathlib import Path

from certs.authority import issue_to_folder
from tests.bench import in_process, served

ROOT = Path(__file__).parent.parent.parent
POLICIES = ROOT / "policies" / "files"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        issue_to_folder(folder / "certs", dns_names=("localhost",))
        for lines in (
            in_process.measure(POLICIES),
            in_process.measure_policies(folder, POLICIES),
            served.measure_cold_start(ROOT / "policies" / "examples" / "1-tensorflow-serving.yaml"),
            served.measure(POLICIES, folder / "certs", folder),
        ):
            for line in lines:
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
