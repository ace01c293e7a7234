"""What a script of sed runs, looked for by its letters e, is what one pattern over all of it finds."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policies.frameworks.shell.tools import runs_another

COMMAND = r"(?:^|[;\n{}/$0-9!])[^\S\n]*e(?:\s|$)"
FLAG = r"[^\w\s-][0-9gImMp]*e[0-9gImMp]*(?:$|[\s;}])"


@given(st.text("eg0;}/$ \n\t!x-_,é", max_size=8))
@example("s/a/b/ge")
@example("1 e\n")
@example("\n \te ls")
@example("age ; page")
def test_a_script_of_sed_runs_a_program_by_its_command_or_by_a_flag(script: str) -> None:
    assert runs_another(["sed", script]) == bool(re.search(f"{COMMAND}|{FLAG}", script))


@pytest.mark.parametrize(("words", "runs"), [(256, False), (257, True)])
def test_a_script_of_sed_with_more_to_look_at_than_any_real_one_may_run_a_program(words: int, *, runs: bool) -> None:
    assert runs_another(["sed", f"s/a/{'page ' * words}/"]) is runs
