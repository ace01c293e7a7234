"""Words of a command line that only mention a program, and the one that starts it."""

import pytest

from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.command_line import CommandLine
from policies.frameworks.detection import Catalogue
from policies.pod import Container


@pytest.mark.parametrize("mentions", [0, 3, 4, 20])
def test_a_shells_text_that_starts_a_program_is_seen_behind_words_that_mention_it(mentions: int) -> None:
    paths = [f"A{number}=/opt/tritonserver/lib" for number in range(mentions)]
    line = CommandLine(Container(name="a", command=["env", *paths, "bash", "-c", "exec tritonserver --model-store=/m"]))
    found = Catalogue(BUILT_IN, ()).within(line)
    assert found is not None
    assert found.name == "triton"
