"""Words of a command line that only mention a program, and the one that starts it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.frameworks.allowance import Allowance
from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.command_line import CommandLine
from policies.frameworks.detection import Catalogue
from policies.frameworks.framework import Framework
from policies.pod import Container


@pytest.mark.parametrize("mentions", [0, 3, 4, 28])
def test_a_shells_text_that_starts_a_program_is_seen_behind_words_that_mention_it(mentions: int) -> None:
    paths = [f"A{number}=/opt/tritonserver/lib" for number in range(mentions)]
    line = CommandLine(Container(name="a", command=["env", *paths, "bash", "-c", "exec tritonserver --model-store=/m"]))
    found = Catalogue(BUILT_IN, ()).within(line, Allowance().mention)
    assert found is not None
    assert found.name == "triton"


@pytest.mark.parametrize("other", ["server", "vllm-serve-x", "served", "preserve", "/opt/serve-it"])
def test_a_word_that_has_the_programs_in_it_is_no_mention(other: str) -> None:
    assert _started(f"{f'echo {other}; ' * 20}exec vllm serve m", Catalogue(BUILT_IN, ())) == "vllm"


def test_a_program_is_seen_behind_many_words_that_others_end_in() -> None:
    assert _started(f"{'echo about to serve; ' * 15}exec vllm serve m", Catalogue(BUILT_IN, ())) == "vllm"
    assert _started(f"{'echo vllm serve; ' * 15}exec vllm serve m", Catalogue(BUILT_IN, ())) == "vllm"


def _started(text: str, catalogue: Catalogue) -> str:
    found = catalogue.within(CommandLine(Container(name="a", command=["sh", "-c", text])), Allowance().mention)
    return found.name if found else ""


_PROGRAMS = [
    "serve",
    "team serve",
    "a/team serve",
    "python -m team",
    "python serve",
    "run team serve",
    "uv run -m team",
]


_COMMANDS = st.tuples(
    st.sampled_from(["", "exec ", "/opt/", "echo ", "X=", "python -u "]),
    st.sampled_from([*_PROGRAMS, "python3 -u -m team", "team  serve", "serve x"]),
    st.sampled_from([";", "\n", " a;", " "]),
).map("".join)


@given(st.lists(_COMMANDS), st.lists(st.sampled_from(_PROGRAMS), min_size=1, unique=True))
def test_of_many_programs_the_first_is_seen_that_is_seen_alone(parts: list[str], programs: list[str]) -> None:
    text = "".join(parts)
    entries = [Framework(name=f"f{number}", programs=(one,), source="-") for number, one in enumerate(programs)]
    # Programs of one first word stand together, at the place of the first of them.
    order = sorted(entries, key=lambda one: [p.split()[0] for p in programs].index(one.programs[0].split()[0]))
    alone = [one.name for one in order if _started(text, Catalogue([one], ()))]
    assert _started(text, Catalogue(entries, ())) == next(iter(alone), "")


def test_a_program_is_seen_behind_all_others_that_most_scripts_name() -> None:
    named = [one for one in BUILT_IN if one.programs][:12]
    text = "; ".join(f"echo {one.programs[-1]}" for one in named * 3)
    for one in named:
        assert _started(f"{text}; exec {one.programs[-1]} m", Catalogue(BUILT_IN, ())) == one.name


def test_of_more_programs_than_any_script_mentions_the_first_are_looked_for() -> None:
    names = [f"team{number}" for number in range(40)]
    catalogue = Catalogue([Framework(name=one, programs=(f"serve-{one}",), source="-") for one in names], ())
    mentions = "; ".join(f"echo serve-{one}" for one in names)
    found = [_started(f"{mentions}; exec serve-{one}", catalogue) for one in names]
    assert found == [*names[:24], *[""] * 16]
    assert [_started(f"exec serve-{one}", catalogue) for one in names] == names
