"""What `make bench` measures can be measured: it asks what the programs have by now."""

from pathlib import Path

from tests.bench import in_process
from tests.bench.__main__ import POLICIES
from tests.bench.counted import counted, scraped


def test_as_many_policies_are_compared_as_can_be_read(tmp_path: Path) -> None:
    *read, compared = in_process.measure_policies(tmp_path, POLICIES)
    assert [line.split()[0] for line in read] == ["1", "1000", "3999"]
    assert compared.startswith("review with 1,000 namespace policies")


def test_a_scraper_is_answered_by_what_was_counted() -> None:
    body = scraped(counted(workers=2, policies=3)).body.decode()
    (line,) = (one for one in body.splitlines() if 'policy="team-2"' in one)
    assert line.endswith(" 2.0")
