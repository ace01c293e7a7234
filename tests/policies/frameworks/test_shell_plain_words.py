import re
import time

from hypothesis import example, given
from hypothesis import strategies as st

from policies.frameworks.allowance import Allowance
from policies.frameworks.expansion import Variables
from policies.frameworks.shell.plain_words import in_plain_words, unread_options
from policies.pod import Container, Variable

NAMES = [f"{letter}{digit}" for letter in "AB" for digit in range(6)]  # more than are looked for one by one
PIECES = st.sampled_from([*NAMES, "$", "=", "=x ", " ", "_", "1", "${", "}", ";"])


@given(st.sets(st.sampled_from(NAMES), min_size=1), st.lists(PIECES, max_size=12).map("".join))
@example({"A1"}, "BA1=")
@example({"A1"}, "$A1=A1=")
@example(set(NAMES), " A1=")
def test_a_variable_has_its_value_in_a_text_that_does_not_assign_it(referred: set[str], rest: str) -> None:
    env = [Variable(name=name, value=f"[value of {name}]") for name in NAMES]
    text = "".join(f"${name};" for name in sorted(referred)) + rest
    words = in_plain_words(text, Variables(Container(name="main", env=env), Allowance()))
    for name in referred:
        assert (f" value of {name} " in words) != bool(re.search(rf"\b{name}=", text, re.ASCII))


@given(st.text(st.sampled_from("ab \\'\"(){}[];&|<>\n_"), max_size=20))
def test_signs_of_a_shell_are_none_of_its_words_whatever_letters_stand_beside_them(text: str) -> None:
    variables = Variables(Container(name="main"), Allowance())
    assert in_plain_words(f"é{text}", variables) == f"é{in_plain_words(f'a{text}', variables)[1:]}"


def test_commands_beyond_those_of_any_script_take_no_more_room_and_may_write_any_option() -> None:
    variables = Variables(Container(name="main"), Allowance())
    few, many = (in_plain_words("x`a` " * count, variables) for count in (100, 5000))
    assert "" not in unread_options(few)
    assert len(many) < 5000 * len("x`a` ") + 10
    assert "" in unread_options(many)


def test_letters_of_another_alphabet_cost_about_as_much() -> None:
    assert any(_cpu_seconds("é'") < 20 * _cpu_seconds("e'") for _ in range(3))


def _cpu_seconds(unit: str) -> float:
    variables = Variables(Container(name="main"), Allowance())
    began = time.process_time()
    in_plain_words(unit * 100_000, variables)
    return time.process_time() - began
