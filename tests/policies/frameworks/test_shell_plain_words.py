import re

from hypothesis import example, given
from hypothesis import strategies as st

from policies.frameworks.expansion import Allowance, Variables
from policies.frameworks.shell.plain_words import in_plain_words
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
