"""What rules out many texts at once says the same as a look at each of them."""

from hypothesis import example, given
from hypothesis import strategies as st

from policies.frameworks.framework import Framework, Memory, Spelling
from policies.frameworks.settings import SettingIndex
from policies.pod import Variable
from tests.policies.pods import policies

INDEX = policies("").catalogue.settings
NAMES = sorted(INDEX.variables)
MEMORY = Memory(spellings=(Spelling(variable="MEMORY"), Spelling(variable="GPU_MEMORY"), Spelling(argument="--gp")))
OTHERS = SettingIndex([Framework(name="other", memory=MEMORY, source="a test")])

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


@given(st.sampled_from([INDEX, OTHERS]), VALUES.map(lambda value: value or ""), st.sampled_from(["", "MEMORY", *NAMES]))
@example(OTHERS, "a", "MEMORY")  # a name with nothing in it that others have
@example(INDEX, "", NAMES[0])
def test_a_text_has_a_setting_if_an_option_or_a_name_stands_in_it(index: SettingIndex, text: str, name: str) -> None:
    text += name
    assert index.has_setting(text) == (bool(index.in_text.search(text)) or any(one in text for one in index.variables))
