"""Lists in a text end where each of them alone would, in whatever order they are asked for."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policies.frameworks.lists_in_texts import ListsInText

PIECES = st.lists(st.sampled_from(["a:1", "b", ",", ";", " ", "|", "<", ">:8", "&", "\n", "\x7f"]), max_size=14)


def end_of_one(text: str, sign: str, begin: int) -> int:
    ends = [";|&<>", "|&<>"][sign == ";"]
    return next(
        (
            at
            for at in range(begin, len(text))
            if text[at] in "\n\x7f" or (text[at] in ends and not re.match(rf"[ \t]*[:,{sign}]", text[at + 1 :]))
        ),
        len(text),
    )


@pytest.mark.parametrize("sign", [",", ";"])
@given(PIECES.map("".join), st.lists(st.integers(0, 30), max_size=6))
@example("a:1,b c|d|e", [9, 7, 0])
@example("a|:b c", [2, 0])
def test_a_list_ends_where_it_does_alone(sign: str, text: str, begins: list[int]) -> None:
    lists = ListsInText(text)
    for begin in (one % (len(text) + 1) for one in begins):
        expected = end_of_one(text, sign, begin)
        assert lists.end(sign, begin, len(text)) == expected
        assert lists.end(sign, begin, begin + 2) == min(expected, begin + 2)


@given(PIECES.map("".join), st.integers(0, 14), st.integers(0, 14))
def test_a_setting_may_stand_where_its_first_word_begins(text: str, begin: int, end: int) -> None:
    may = ListsInText(text).may_have("a:{fraction}", begin, end)
    assert may == any(text[at] == "a" for at in range(begin, min(end, len(text))))
