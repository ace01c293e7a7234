"""
`make bench`: what the admission path and the node cost, as ratios within one run. Nothing here passes or fails.

`make bench ONLY=node`, `ONLY=webhook`, `ONLY=worst`, `ONLY=crowd`, `ONLY=scrapes` or `ONLY=tenants`, which needs a GPU,
measures one of the six.
"""

import sys
import tempfile
from itertools import chain
from pathlib import Path

from certs.issuer import issue_to_directory
from tests.bench import crowd, in_process, node, scrapes, served, tenants, worst_cases

ROOT = Path(__file__).parent.parent.parent
POLICIES = ROOT / "policies" / "files"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        issue_to_directory(directory / "certs", dns_names=("localhost",))
        webhook = (
            in_process.measure(POLICIES),
            in_process.measure_policies(directory, POLICIES),
            served.measure_cold_start(ROOT / "policies" / "examples" / "1-tensorflow-serving.yaml"),
            served.measure(POLICIES, directory / "certs", directory),
        )
        parts = {"webhook": webhook, "worst": (worst_cases.measure(),), "node": (node.measure(directory),)}
        parts |= {"crowd": (crowd.measure(POLICIES, directory / "certs", directory),)}
        parts |= {"scrapes": (scrapes.measure(directory),), "tenants": (tenants.measure(),)}
        for lines in chain.from_iterable(parts[name] for name in sys.argv[1:] or parts):
            for line in lines:
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
