"""What a shell's text is read as is what dash and bash make of it; and no text costs more than its bound."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.detection import Catalogue
from policies.frameworks.expansion import A_VALUE, MOST_TOKENS, UNREAD, Allowance, UnreadableError, Variables
from policies.frameworks.shell.reader import Lexer
from policies.frameworks.shell.script import Word
from policies.frameworks.unread_words import UnreadWords
from policies.pod import Container

INDEX = Catalogue(BUILT_IN, ()).settings
ENV = {"A": "a", "B": "b  c", "EMPTY": "", "D": "--d=1", "Q": "x'y"}
SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
PROBE = "p() { for one in \"$@\"; do printf '%s\\001' \"$one\"; done; printf '\\002'; } >&9\n"


class Recorder(UnreadWords):
    """Takes note of the words that the command `p` gets."""

    def __init__(self, allowance: Allowance | None = None, **fields: Any) -> None:
        env = [{"name": name, "value": value} for name, value in ENV.items()]
        container = msgspec.convert({"name": "main", "env": env, **fields}, Container)
        super().__init__(Variables(container, allowance or Allowance()), INDEX)
        self.lines: list[list[str]] = []

    def value(self, name: str) -> str:
        known = super().value(name)
        return "" if known == A_VALUE else known  # the real shells of these tests have no image with more variables

    def command(self, words: list[Word]) -> str:
        if words[0].text == "p":
            self.lines.append([one.text for one in words[1:]])
        return super().command(words)


def read(text: str) -> list[list[str]]:
    recorder = Recorder()
    recorder.begin(text)
    recorder.depth = 1  # in what a container is started with
    Lexer(text, recorder).read()
    return recorder.lines


def run(shell: str, text: str, folder: Path) -> list[list[str]]:
    """Run *text*, in which `p` writes its words."""
    out = folder / "out"
    subprocess.run(
        [shell, "-c", f"exec 9>{out}\n{PROBE}{text}"],
        cwd=folder, env={"PATH": "/usr/bin:/bin", **ENV}, check=False, timeout=10,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return [line.split("\1")[:-1] for line in out.read_text().split("\2")[:-1]]


def may_be(line: list[str], as_read: list[str]) -> bool:
    """Whether a command that is read so may get the words of *line*: a mark stands for anything."""
    pattern = ".*".join(map(re.escape, re.split("\0[\1-\6]", "\1".join(filter(None, as_read)))))
    return re.fullmatch(pattern, "\1".join(filter(None, line)), re.DOTALL) is not None


PLAIN = st.text(st.sampled_from("abx01=,.:/@%+_-"), min_size=1, max_size=4)
QUOTED = st.text(st.sampled_from("ab -#;&|()<>$=\t"), max_size=5)
PARTS = st.one_of(
    PLAIN,
    st.builds("'{}'".format, QUOTED),
    st.builds('"{}"'.format, st.text(st.sampled_from("ab -#;&|()<>'="), max_size=5)),
    st.sampled_from([
        "$A", "${A}", "$B", '"$A"', '"${B}"', "$EMPTY", '"$EMPTY"', "${EMPTY:-e}", "${EMPTY-e}", "${A:-no}", "${A:+w}",
        '"${EMPTY:-"$A x"}"',
        '"${B:-n}"', "${EMPTY:+n}", "$D", '"$Q"', "\\$A", "\\ ", "\\'", '\\"', '"\\$A"', '"\\a"', "\\\\",
        "''", '""', "x#y", "$/", '"$"', '"a"b\'c\'',
    ]),
)  # fmt: skip
WORDS = st.builds("".join, st.lists(PARTS, min_size=1, max_size=4))
COMMANDS = st.builds(lambda words: " ".join(["p", *words]), st.lists(WORDS, max_size=4))


def wrapped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Everything that runs each of its commands once, and in order."""
    return st.one_of(
        st.builds("{}; {}".format, inner, inner),
        st.builds("{}\n\n{}".format, inner, inner),
        st.builds("{} && {}".format, inner, inner),
        st.builds("{{ {}; }}".format, inner),
        st.builds("( {} )".format, inner),
        st.builds("if true; then {}; else false; fi".format, inner),
        st.builds("for i in x; do {}\ndone".format, inner),
        st.builds("case $A in b|c) ;; (a) {};; esac".format, inner),
        st.builds("{{ {} # p no\n}}".format, inner),
        st.builds("{} >/dev/null 2>&1 </dev/null".format, inner),
        st.builds("N={} ; p $A".format, st.just("1")),
        st.builds("V='v w'; p $V \"$V\" ; {}".format, inner),
        st.builds("{{ cat >/dev/null <<EOF\n$A p no\nEOF\n{}\n}}".format, inner),
        st.builds("{{ cat <<-'EOF' >/dev/null; {}\n\tp no\n\tEOF\n}}".format, COMMANDS),
        st.builds("f() {{ {}; }}; f".format, inner),
        st.builds("! false && true | true; {}".format, inner),
        st.builds("while true; do {}; break; done".format, inner),
    )


TEXTS = st.recursive(COMMANDS, wrapped, max_leaves=4)


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS)
@example(text='p a\'b\'"c"\\ d $A$B"$B"')
@example(text="p <<X a\nno p\nX\np b")
@example(text="A=new; p $A; V=b p x; p ${A}")
@example(text="p a;p b&&p c||p d\np e&wait")
@example(text="p a \\\n b")
@example(text="eval p a")
def test_a_command_gets_the_words_that_a_real_shell_gives_it(shell: str, text: str, tmp_path: Path) -> None:
    if "||" in text:
        text = text.replace("||", "&&")
    ran, as_read = run(shell, text, tmp_path), read(text)
    assert len(ran) == len(as_read), text
    assert all(any(may_be(line, by) for by in as_read) for line in ran), text


@pytest.mark.skipif("bash" not in SHELLS, reason="needs bash")
@pytest.mark.parametrize(
    "text",
    [
        "p $'a\\055\\x2d\\tb'", "[[ $A == a && -n $B ]] && p y", "p a <<< $B", "p a &>/dev/null",
        "function g { p z; }; g", "p a |& cat", "for i in 1; { p $A; }",
    ],
)  # fmt: skip
def test_what_bash_adds_is_read_as_bash_reads_it(text: str, tmp_path: Path) -> None:
    assert sorted(read(text)) == sorted(run("bash", text, tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        "p '", 'p "', "p `a", "p $(a", "p ${A", "p )", "(p",
        "case a in", "case a in b) p", "esac", "for", "p <<X\na", "p a(b",
        "((1))", "coproc p", 'p $"a"', "p ;;", "IFS=x; p", "[[ a", "[[ $(a) ]]", "p $(" * 20, "p ${A:-" * 20, "p `" * 3,
        "$A\\\nB", "<\\\n<E", "a=(", "a=(b;", "<<$A", "<<",
    ],
)  # fmt: skip
def test_what_is_not_of_the_grammar_is_not_read(text: str) -> None:
    with pytest.raises(UnreadableError):
        read(text)


def looked_at(words: list[str], *, is_command: bool = True, **fields: Any) -> Recorder:
    recorder = Recorder(**fields)
    recorder.look_at(words, is_command=is_command)
    return recorder


SIGNS = st.text(st.sampled_from("ab \n\t'\"\\$`(){}[];&|<>#=-+?:%!*,.1@\0\1\2\4\5é"), max_size=60)
PIECES = st.lists(
    st.sampled_from([
        "case ", "esac", " in ", "for ", "do ", "done", "if ", "fi",
        "<<E\n", "\nE\n", "$(", "${A:-", "`", "'", '"', "sh -c",
        "eval ", "exec ", "[[ ", " ]]", "((", "))", "f()", "A=", "A+=(",
        "$A", ";;", "export ", "read x", "xargs ", "\\", "}",
    ]),
    max_size=30,
).map("".join)  # fmt: skip


@given(SIGNS | PIECES)
def test_no_text_at_all_is_an_error(text: str) -> None:
    for is_command in (True, False):
        looked_at(["sh", "-c", text], is_command=is_command)
        looked_at([text, text], is_command=is_command)


@given(SIGNS | PIECES)
@example("sh -cdo ")
@example("bash --rcfile")
def test_what_is_read_is_read_to_its_end_and_within_its_bound(text: str) -> None:
    allowance = Allowance()
    recorder = Recorder(allowance)
    recorder.begin(text)
    try:
        Lexer(text, recorder).read()
    except UnreadableError:
        return
    assert recorder.depth == 0


@pytest.mark.parametrize(
    "unit", ["a;", "'a' ", "$(", "${A:-", "`a` ", "sh -c '", "eval ", "(", "<<E\n", "case a in a) ", "$A "]
)
def test_a_text_of_any_length_costs_a_bounded_number_of_tokens(unit: str) -> None:
    calls = 0

    class Counting(Allowance):
        def count_token(self) -> None:
            nonlocal calls
            calls += 1
            super().count_token()

    recorder = Recorder(Counting())
    recorder.begin(unit * 100_000)
    with pytest.raises(UnreadableError):
        Lexer(unit * 100_000, recorder).read()
    assert calls <= MOST_TOKENS + 1


def test_what_a_shell_computes_is_a_mark() -> None:
    (line,) = read('p $(cat x) `cat x` "$(nproc)" $((1 + 2)) ${A#x} $1 "$@"')
    assert all(word.startswith(UNREAD) for word in line)
