"""Options with a common beginning are matched as each of them alone is."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policies.errors import PolicyError
from policies.frameworks.option_pattern import Names, Words, in_text
from policies.frameworks.settings import SettingIndex
from policies.reading.store import load
from tests.policies.pods import policies

INDEX: SettingIndex = policies("").catalogue.settings
BUILT_IN = {name: min(map(len, (one for one in INDEX.options if name.startswith(one)))) for name in INDEX.options}
LONGEST = 6


def one_by_one(lengths: Mapping[str, int]) -> re.Pattern[str]:
    """Match the same by one alternative for each option, and each of its abbreviations."""
    ends = {option[:end] for option, shortest in lengths.items() for end in range(shortest, len(option) + 1)}
    choice = "|".join(re.escape(one).replace(r"\-", "[-_]") for one in sorted(ends)) or "(?!)"
    return re.compile(rf"-(?<![\w-]-)-*+({choice})(?!=?\*|[\w\0.-])(?=[=:,\s]*(?:-\s+)?([^\s\x7f]{{0,{LONGEST}}}))")


NAMES = st.from_regex(r"[ab][ab1-]{0,5}", fullmatch=True)
LENGTHS = st.dictionaries(NAMES, st.integers(1, 6), max_size=6).map(
    lambda lengths: {name: min(shortest, len(name)) for name, shortest in lengths.items()}
)
ENDS = ["-", "--", "_", "=", " ", ":", ",", "*", "\0", "\x7f", ".", "0.9", "é", "A"]


@st.composite
def options_and_text(draw: st.DrawFn) -> tuple[dict[str, int], str]:
    lengths = draw(LENGTHS | st.just(BUILT_IN))
    starts = [name[:end] for name in lengths for end in range(1, len(name) + 1)]
    pieces = st.sampled_from([*starts, *ENDS, "a", "b"])
    return lengths, "".join(draw(st.lists(st.just("-") | st.just(" --") | pieces, max_size=12)))


@given(options_and_text())
@example(({"ab": 1, "a-b": 3, "a": 1}, "-a --a_b=1 -ab -a-"))
@example(({"a-b": 3, "a": 1}, "-a- -a-b --a"))
@example(({}, "-a --b"))
def test_the_same_is_found_as_by_one_alternative_for_each(of: tuple[dict[str, int], str]) -> None:
    lengths, text = of
    found = [(one.span(), one.groups()) for one in in_text(lengths, LONGEST).finditer(text)]
    assert found == [(one.span(), one.groups()) for one in one_by_one(lengths).finditer(text)]


def test_each_character_of_options_that_begin_alike_is_looked_at_once() -> None:
    lengths = {f"gpu-{number}-fraction": len(f"gpu-{number}-fraction") for number in range(100, 200)}
    assert in_text(lengths, LONGEST).pattern.count("u[-_]1") == 1


_FILLERS = [f"z{number}" for number in range(20)]  # so that they are many


@given(st.lists(NAMES | st.text(min_size=1, max_size=3), unique=True), st.text(alphabet="ab1-.", max_size=16))
@example(["a", "ab-1"], "x.ab-")
@example(["a.b"], "a-b")
@example(["ab", "ba", "aba", "b-a"], "ababab-aba")
def test_names_are_found_in_a_text_wherever_they_stand(names: list[str], text: str) -> None:
    for every in (names, [*names, *_FILLERS]):
        assert Names(every).any_in(text) == any(name in text for name in names)
        found = Names(every).places_in(text)
        assert list(found) == [name for name in names if name in text]
        for name, places in found.items():
            assert places == [match.start() for match in re.finditer(re.escape(name), text)]


@given(
    st.lists(NAMES | st.text(alphabet="ab/;.", min_size=1, max_size=3), unique=True),
    st.text(alphabet="ab1-/;.{ ", max_size=16),
)
@example(["a", "ab", "b"], "ab;a/b")
@example(["a;b", "a", "b"], "/a;b")
@example([], " ")
def test_words_are_found_where_they_stand_by_themselves(words: list[str], text: str) -> None:
    found = Words(words, before=r"\s;/{", behind=r"\s;").found_in(text)
    alone = {one for one in words if re.search(rf"(?<![^\s;/{{]){re.escape(one)}(?![^\s;])", text)}
    with_signs = {one for one in words if re.search(r"[\s;/{]", one)}
    assert found - with_signs == alone - with_signs
    assert found & with_signs == {one for one in with_signs if one in text}


def written(directory: Path, letters: int) -> Path:
    entry = f"{{name: own, source: s, memory: {{spellings: [{{argument: --{'a' * letters}}}]}}}}"
    (directory / "_cluster.yaml").write_text(f"frameworks: [{entry}]\n")
    return directory


def test_an_option_is_as_long_as_any_program_has_one(tmp_path: Path) -> None:
    load(written(tmp_path, 128))


@pytest.mark.parametrize("letters", [129, 3000])
def test_a_longer_one_is_a_fault_of_the_file(tmp_path: Path, letters: int) -> None:
    with pytest.raises(PolicyError, match="two letters or more, 128 at most"):
        load(written(tmp_path, letters))
