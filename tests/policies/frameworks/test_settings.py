"""What rules out many texts at once says the same as a look at each of them."""

from hypothesis import example, given
from hypothesis import strategies as st

from policies.pod import Variable
from tests.policies.pods import policies

INDEX = policies("").catalogue.settings
NAMES = sorted(INDEX.variables)

# What settings are made of, what stands between them, and what keeps them from being one.
PIECES = st.sampled_from(
    ["-", "--", "gp", "gpu-memory-utilization", "gpu_mem", "=0.9", " ", "\n", "\0", "a", "_", "$", "`", "x-", NAMES[0],
     NAMES[0][:5], NAMES[0][5:], "XLA_CLIENT_MEM_FRACTION"],
)  # fmt: skip
VALUES = st.none() | st.lists(PIECES, max_size=4).map("".join)
VARIABLES = st.builds(Variable, name=st.sampled_from(["A", "B", *NAMES[:2]]), value=VALUES)


@given(st.lists(VARIABLES, max_size=6))
@example([Variable(name="A", value="--"), Variable(name="B", value="gp=0.9")])  # no option begins in another value
@example([Variable(name="A", value="x"), Variable(name="B", value="--gp")])
@example([Variable(name="A", value="--gp"), Variable(name="B", value="x")])
def test_the_texts_of_an_environment_are_those_that_a_look_at_each_variable_finds(env: list[Variable]) -> None:
    assert INDEX.texts_in(env) == [place for place, one in enumerate(env) if INDEX.is_text(one)]
