"""What a variable holds already is kept where it is whole words of its new value, and may be anything elsewhere."""

from hypothesis import example, given
from hypothesis import strategies as st

from policies.frameworks.expansion import ANYTHING
from policies.frameworks.shell.rest import REST, SPACE, without_joined_rest


@given(st.lists(st.sampled_from([REST, "a", "-", " ", "  ", "\t", "\n", ANYTHING])).map("".join))
@example(f"{REST} a {REST}")
@example(f"{REST}{REST} \t{REST}a\n\na{REST}")
def test_what_is_held_already_is_kept_as_whole_words_alone(value: str) -> None:
    words = [one if one == REST else one.replace(REST, ANYTHING) for one in SPACE.split(value)]
    assert without_joined_rest(value) == (" ".join(words) if REST in value else value)
