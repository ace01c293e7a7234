"""Files without the ending of a policy file: what they are in a directory, and would be in a ConfigMap of all of it."""

from collections.abc import Iterator, Sequence

from policies.errors import Problem
from policies.reading.directory import MOST_FILES
from policies.reading.layers import problem_of_name
from policies.reading.told import MOST_TOLD, first_of


def left_unread(files: Sequence[str], unread: Sequence[str]) -> Iterator[Problem]:
    """Yield which files are *unread*, and whether a ConfigMap has too many by them beside the policy *files*."""
    count = len(files) + len(unread)
    if count > MOST_FILES:
        message = (
            f"no webhook starts by a ConfigMap of all {count} files, as {MOST_FILES} are allowed: remove the others"
        )
        yield Problem("", 0, "", message)
    yield from first_of(filter(None, map(problem_of_name, unread)), MOST_TOLD)
