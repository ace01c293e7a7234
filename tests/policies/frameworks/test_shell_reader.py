"""What a shell's text is read as has what dash and bash make of it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.expansion import UNREAD
from policies.frameworks.shell.command_words import CommandWords
from policies.frameworks.shell.reader import script_of
from tests.policies.frameworks.recorder import ENV, read, recorded

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
PROBE = "p() { for one in \"$@\"; do printf '%s\\001' \"$one\"; done; printf '\\002'; } >&9\n"


def is_readable(text: str) -> bool:
    try:
        script_of(text, lambda _=1, /: None)
    except UnreadableError:
        return False
    return True


def run(shell: str, text: str, folder: Path) -> list[list[str]]:
    """Run *text*, in which `p` writes its words."""
    out = folder / "out"
    subprocess.run(
        [shell, "-c", f"exec 9>{out}\n{PROBE}{text}"],
        cwd=folder, env={"PATH": "/usr/bin:/bin", **ENV}, check=False, timeout=10,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return [line.split("\1")[:-1] for line in out.read_text().split("\2")[:-1]]


def may_be(line: list[str], words: CommandWords) -> bool:
    """Whether a command that is read so may get the words of *line*: a mark stands for anything."""
    places = "".join(f"(?:{'|'.join(map(_pattern, ways))})" for ways in words.places)
    places = places.replace(".*\1)(?:.*", ".*)(?:.*")  # what is not quoted may be several words, or a part of one
    return re.fullmatch(places, "".join(f"{one}\1" for one in line), re.DOTALL) is not None


def _pattern(way: tuple[str, ...]) -> str:
    text = "".join(f"{word}\1" for word in way)
    known = ".*".join(map(re.escape, re.split("\0[\1-\6]", text))).replace(".*\1.*", ".*")
    return f"(?:{known})?" if re.fullmatch("(?:\0[\1-\6])+\1", text) else known


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
        "$V", '"$V"', "${W:-$V}", "$1", '"$@"', "$*", '"${W:=w}"', "${V%b}",
    ]),
)  # fmt: skip
WORDS = st.builds("".join, st.lists(PARTS, min_size=1, max_size=4))
COMMANDS = st.builds(lambda words: " ".join(["p", *words]), st.lists(WORDS, max_size=4))


SETTING = st.one_of(
    st.builds("V={}".format, WORDS),
    st.builds("W={} V={}".format, WORDS, WORDS),
    st.builds("export V={}".format, WORDS.map('"{}"'.format).filter(lambda text: text.count('"') == 2)),
    st.builds("set -- {} {}".format, WORDS, WORDS),
    st.builds(": ${{W:={}}}".format, PLAIN),
    st.builds("for V in {} {}; do :; done".format, WORDS, WORDS),
    st.builds("read V <<E\n{}\nE\n:".format, PLAIN),
    st.sampled_from(["unset V A", "V=x true", "g() { V=$1; }", "g a", "shift 0", "set -f", "V=$V$V"]),
)


def closed(text: str) -> str:
    """End the loop or the branch that a text begins with, at the end of its line."""
    first, _, rest = text.partition("\n")
    return f"{first}; {'fi' if first.startswith('if') else 'done'}\n{rest}"


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
        st.builds("f() {{ {}; }}; f {}".format, inner, WORDS),
        st.builds("{} {}; {}".format, SETTING, inner, inner),
        st.builds("{} {}\n{}".format, st.sampled_from(["if false; then", "for i in; do"]), SETTING, inner).map(closed),
        st.builds("{} {}; {}".format, st.sampled_from(["true &&", "! true ||", "eval", "{ :; };"]), SETTING, inner),
        st.builds("( {} ) ; {}".format, SETTING, inner),
        st.builds("sh -c '{}' {} ; {}".format, st.sampled_from([":", "V=z; : $0"]), WORDS, inner),
        st.builds("! false && true | true; {}".format, inner),
        st.builds("while true; do {}; break; done".format, inner),
    )


TEXTS = st.recursive(COMMANDS, wrapped, max_leaves=4)


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS)
@example(text='p a\'b\'"c"\\ d $A$B"$B"')
@example(text="p <<X a\nno p\nX\np b")
@example(text="A=new; p $A; V=b p x; p ${A}")
@example(text="p a;p b&&p c||p d\np e&wait")
@example(text="p a \\\n b")
@example(text="eval p a")
@example(text="A=new; B='c d'; p $A $B")
@example(text='false || A=new; p x$A"$A"')
@example(text="set -- a 'b c'; p $1 \"$@\" $2")
@example(text="f() { p $1; }; f 'a b'; f c")
@example(text="f() { p \"$@\" $@; }; f '' a")
@example(text="for A in a b; do p $A; break; done")
@example(text="true && set -- 0 ''$1; p \"$@\"")
@example(text='set -- 0 "$1"; p "$@"')
@example(text='f() { p "$@"; }; f "${EMPTY:-"$A x"}"')
@example(text='set -- "${EMPTY:-"$A x"}" b; p "$@"')
def test_a_command_gets_the_words_that_a_real_shell_gives_it(shell: str, text: str, tmp_path: Path) -> None:
    if "||" in text:
        text = text.replace("||", "&&")
    assume(is_readable(text))
    ran, as_read = run(shell, text, tmp_path), recorded(text)
    assume(as_read.start is None)  # else a word was found that may be anything
    assert all(any(may_be(line, by) for by in as_read.commands) for line in ran), text


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "text",
    [
        'V=a; V="$V b"; for i in c d; do V="$V $i"; done; p $V',
        'V=a; if :; then V="b $V c"; fi; V="$V -d"; p $V x$V',
        'set -- a; set -- "$@" b; for i in "$@" c; do set -- "$i" "$@"; done; p "$@"',
    ],
)
def test_each_word_that_is_put_to_others_in_a_variable_is_read(shell: str, text: str, tmp_path: Path) -> None:
    (line,) = run(shell, text, tmp_path)
    words = [one for words in read(text) for one in words.every()]
    assert all(any(re.fullmatch(_pattern((word,)), f"{one}\1") for word in words) for one in line)


ODD = ["a\\xb", "a\\}b", "a\\\\b", "a\\$b", 'a\\"b', "a\\`b", "a\\'b", "a\\\n b", "a\\~", "a'x'", "$A", "$"]
IN_BRACES = [
    'p "${{A+{}}}"', "p ${{A+{}}}", 'p "${{NONE-{}}}"', 'p "${{A+${{NONE-{}}}}}"', 'p "${{A#{}}}"',
    'p ${{A+"${{NONE-{}}}"}}', 'read -r V <<E\n${{A+{}}}\nE\np "$V"',
]  # fmt: skip
IN_QUOTES_IN_BRACES = [
    'p "${{A+"{}"}}"', 'p ${{A+"{}"}}', 'p "${{A+"{}"b}}"', 'p "${{A+b"{}"}}"', 'p "${{A+"$A"{}}}"', 'p "${{A+{}"b"}}"',
    'p "${{A+"a" {} "b"}}"', 'p "${{A+"$A/"{}}}"', 'p "${{NONE-"{}"}}"', 'p "${{A+"${{NONE-"{}"}}"}}"',
    'p "${{A%"{}"}}"',
]  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("text", [form.format(one) for form in IN_BRACES + IN_QUOTES_IN_BRACES for one in ODD])
def test_a_backslash_and_quotes_in_braces_are_what_a_shell_makes_of_them(shell: str, text: str, tmp_path: Path) -> None:
    if is_readable(text) and (as_read := recorded(text)).start is None:
        (line,) = run(shell, text, tmp_path)
        assert all(may_be(line, words) for words in as_read.commands), (line, as_read.commands)


def test_what_both_shells_make_of_a_backslash_in_quoted_braces_is_read() -> None:
    texts = ['p "${A+\\a}"', 'p "${A+\\}}"', 'p "${A+a\\\n b}"', "p ${A+a \\\n}", 'p "${A+"a\\$b" "$A"}"']
    assert [words.line for text in texts for words in read(text)] == [["\\a"], ["}"], ["a b"], ["a"], ["a$b a"]]


@pytest.mark.skipif("bash" not in SHELLS, reason="needs bash")
@pytest.mark.parametrize(
    "text",
    [
        "[[ $A == a && -n $B ]] && p y", "p a <<< $B", "p a &>/dev/null", "p <(:) x", "p <(:)x", "p '<(p)'",
        "function g { p z; }; g", "p a |& cat",
        "for i in 1; { p $A; }", "C=(a 'b c'); C+=(d); p \"${C[@]:0:2}\"", "C=(a 'b c'); p \"${C[@]}\"",
        "C=x; C+=y; p $C", "declare C=$B; p $C", "export C=$B; p $C",
    ],
)  # fmt: skip
def test_what_bash_adds_is_read_as_bash_reads_it(text: str, tmp_path: Path) -> None:
    (line,), (words,) = run("bash", text, tmp_path), read(text)
    assert may_be(line, words)


@pytest.mark.parametrize(
    "text",
    [
        "p '", 'p "', "p `a", "p $(a", "p ${A", "p )", "(p",
        "case a in", "case a in b) p", "esac", "for", "p <<X\na", "p a(b",
        "(('1'))", "coproc p", 'p $"a"', "p ;;", "[[ a", "[[ $(a ]]", "p $(" * 20, "p ${A:-" * 20, "p `" * 3,
        "for i in 1; do<(p); done", "!<(p)", "{<(p)\n}", "do''<(p in)", "p x<(a)", "p --x=>(a)",
        'p "a"<(a)', "p $A<(a)", "p <(a)<(a)", "A=x<(a)", "p \\\n''>(a)",
        "$A\\\nB", "<\\\n<E", "a=(", "a=(b;", "<<$A", "<<", "p $'a'", "exec {A}>/x", "p $A$/",
        "((n>0)) p", "((n>0)) A=x", "[[ -n $D ]] p", "[[ -n $D ]] A+=(x)",
    ],
)  # fmt: skip
def test_what_is_not_of_the_grammar_is_not_read(text: str) -> None:
    assert not is_readable(text)


def test_what_looks_like_the_file_of_a_process_is_text_in_double_quotes() -> None:
    assert [words.line for words in read('p "a<(b)" ">(b)"')] == [["a<(b)", ">(b)"]]


def test_a_loop_over_the_file_of_a_process_gives_it_to_no_command_of_its_body() -> None:
    commands = script_of("for a in <(p x); do p y; done", lambda _=1, /: None).commands
    assert [one.reads_file for one in commands] == [False] * 3


def test_what_a_shell_computes_is_a_mark() -> None:
    (words,) = read('p $(cat x) `cat x` "$(nproc)" $((1 + 2)) ${NONE#x}')
    assert all(word.startswith(UNREAD) for word in words.every())
