"""
How much is told of what is wrong in policy files.

Nobody corrects thousands of problems at once, and each of them would take time to find, memory and a line of the log.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from policies.errors import Problem

MOST_OF_A_FILE: Final = 24
MOST_TOLD: Final = 500  # of all files together, and one of each further one until it is listed


def first_of(problems: Iterable[Problem], most: int) -> Iterator[Problem]:
    """Yield at most so many of *problems*, and one that says that there are more; those are not even looked for."""
    found, line = iter(problems), 0
    for one in islice(found, most):
        line = max(line, one.line)
        yield one
    if (further := next(found, None)) is not None:
        message = "at least one more problem is not listed: correct the others first"
        yield Problem(further.file, max(line, further.line), "", message)
