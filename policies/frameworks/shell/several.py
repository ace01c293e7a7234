"""What stands for many values, of which the words are not told apart any longer."""

import re
from collections.abc import Iterable
from typing import Final

from policies.frameworks.expansion import A_NAME, A_NUMBER, A_VALUE, ANYTHING, TOLD

MOST_VALUES: Final = 16  # of one variable, and of one word
_EMPTY: Final = f"(?:{A_VALUE}|{A_NUMBER})*+"  # or not; what stands behind it may be what a word begins with
PLAIN: Final = re.compile(f"(?!{_EMPTY}-)(?:(?>[\\w./:@%+,-]++|{A_VALUE}|{A_NAME}|{A_NUMBER}|{TOLD}))*+", re.ASCII)


def few(values: Iterable[str]) -> list[str]:
    """Tell values apart, unless they are too many."""
    some = list(values)
    return some if len(some) <= MOST_VALUES else one_of(some)


def one_of(values: Iterable[str]) -> list[str]:
    """Stand for one of many values."""
    some = list(values)
    return some if len(some) == 1 else [A_VALUE if all(map(PLAIN.fullmatch, some)) else ANYTHING]
