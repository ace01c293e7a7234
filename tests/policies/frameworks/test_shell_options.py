"""Options of `env` and `exec` that take a word in a way that is not told apart are seen, and no others."""

import pytest

from policies.frameworks.shell.options import has_odd_option


@pytest.mark.parametrize(
    "line",
    [
        "exec -ca echo p", "exec -lca echo p", "exec -aecho p", "exec -c -la echo p", "exec -c\0\2 echo p",
        "env -iu A p", "env -uA p", "env -0vS p", "env -a echo p", "env --uns A p", "env --ch / p", "env --split=p",
        "exec -\0\1 p", "env --argv0 echo p", "env --\0\2 echo p", "env A=b -iu A p", "nice /usr/bin/env -vC / p",
        "exec -app=\0\1 p", "exec --x\0\2=1 p", "env --unset=\0\1 p", "env --chdir=\0\1 p", "env --c=\0\2 p",
        "env --s=\0\2", "env -u\0\2 p", "env --unset=A\0\1 p",
    ],
)  # fmt: skip
def test_an_option_that_may_take_a_word_is_odd(line: str) -> None:
    assert has_odd_option(line.split(" "))


@pytest.mark.parametrize(
    "line",
    [
        "exec --enforce-eager", "exec --port 80", "exec -tp 2", "exec -cl p", "exec -a echo p", "exec p -ca echo",
        "env -i p", "env -0iv p", "env -u A -C / p", "env --unset A --chdir=/ p", "env --ignore-signal=PIPE p",
        "env --enforce-eager", "env -- p --uns A", "exec --port=\0\1", "exec -x=\0\2 p", "env A=b --port=\0\1",
        "env --api-key=\0\1", "env --served-model-name m", "env --chat-template=\0\2 p", "env --uvicorn x",
    ],
)  # fmt: skip
def test_an_option_that_takes_no_word_or_is_not_there_is_not_odd(line: str) -> None:
    assert not has_odd_option(line.split(" "))
