"""An end of a line behind a backslash is left out wherever shells leave it out, or the text is not read."""

import subprocess
from pathlib import Path

import pytest

from policies.grant import Denied
from tests.policies.frameworks.recorder import read
from tests.policies.frameworks.test_shell_reader import SHELLS, is_readable, may_be, run
from tests.policies.pods import container, decided, pod, policies

JOINED = "\\\n"
# None of them has single quotes or a comment, in which such an end stays.
TEXTS = [
    'A=1 AB=2 AC=x:~ ; p $A$AB ${AC:-"$B x"} "$A{b}" {1..3} ~/x',
    'p a;p b&&p c||p d&wait\np `p e|p "$A"`$(p f)',
    "if true; then for A in a b;do p $A;break;done; fi 2>&1 >>/dev/null </dev/null; ! p c",
    "case $A in b|a) p x;; *) p y;;esac; f() { p $1; }; f a; p ${EMPTY:-x}${A#b}",
    'p $((C=5+1)) $C; time -p p a; set -- 0 x; p "$@"; export V=1 W=2; p $V',
    "cat <<E >/dev/null; p b\nx\nE\nwhile p c; do break; done",
]  # fmt: skip


def pieces(text: str) -> list[tuple[str, str]]:
    """List *text* in two parts, at each place."""
    return [(text[:at], text[at:]) for at in range(len(text) + 1)]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_with_such_an_end_anywhere_is_read_as_without_it_or_not_at_all(text: str) -> None:
    without = [words.places for words in read(text)]
    readable = [f"{one}{JOINED}{other}" for one, other in pieces(text) if is_readable(f"{one}{JOINED}{other}")]
    assert len(readable) > len(text) / 3
    assert {one: [words.places for words in read(one)] for one in readable} == dict.fromkeys(readable, without)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "text",
    [
        "p a &&\\\np b ||\\\np c;\\\np d |\\\ncat", "p --a=\\\n/t.jinja \"$A\"\\\n/x 'a\\\nb' # c\\\np e",
        'p "a\\\n$B"',
        "for V in a b; do\\\n p $V;\\\ndone", "if\\\n true; then\\\n p a; fi\\\n", "p $A x,\\\n\\\ny", "(\\\np a)",
    ],
)  # fmt: skip
def test_what_people_join_is_read_as_a_shell_reads_it(shell: str, text: str, tmp_path: Path) -> None:
    ran, commands = run(shell, text, tmp_path), read(text)
    assert all(any(may_be(line, words) for words in commands) for line in ran)
    assert subprocess.run([shell, "-nc", text], check=False).returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        "$A\\\nB", 'p "$A\\\nB"', "p ${A\\\nB}", "p ${A:\\\n-b}", "p $\\\n{A}", "p $\\\n'a'", "A\\\n=b", "A[0\\\n]=b",
        "A=\\\n(b)", "i\\\nf a; then b; fi", "f\\\n() { a; }", "a &\\\n& b", "a;\\\n; b", "a 2\\\n>b", "a >\\\n>b",
        "a <\\\n<E\nE", "a {b}\\\n>c", "(\\\n(A=1))", "p $((A=1)\\\n)", "for A\\\nin in b; do c; done", "time -\\\np a",
        "BASH_\\\nALIASES[a]=b", 'declare "BASH_\\\nALIASES[a]=b"', "[[ a &\\\n& b ]]", 'p "${A+$B\\\n"x"}"',
    ],
)  # fmt: skip
def test_where_it_joins_a_name_or_an_operator_the_text_is_not_read(text: str) -> None:
    assert not is_readable(text)


def test_a_script_with_no_blank_in_front_of_such_an_end_is_granted_under_time_slicing() -> None:
    script = (
        'export A=1;\\\npip install -r req.txt &&\\\nvllm serve "${MODEL:-m}" --gpu-memory-utilization=0.2 '
        '--out "/out/$(date +%s)" --port "${PORT:-8000}" --chat-template=\\\n/t.jinja'
    )
    on = pod("0.2", container(command=["sh", "-c", script]))
    assert not isinstance(decided(on, policies("strategy: time-slicing")), Denied)
