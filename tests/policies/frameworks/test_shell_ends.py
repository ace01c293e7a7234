"""Whatever a shell's text is, reading it is no error, comes to an end, and costs no more than its bound."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policies.frameworks.allowance import MOST_STEPS, Allowance, UnreadableError
from policies.frameworks.shell.command_words import Call
from policies.frameworks.shell.reader import script_of
from tests.policies.frameworks.recorder import Recorder, looked_at

SIGNS = st.text(st.sampled_from("ab \n\t'\"\\$`(){}[];&|<>#=-+?:%!*,.1@\0\1\2\4\5\16é"), max_size=60)
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
def test_a_text_that_is_looked_at_leaves_nothing_behind_but_what_it_found(text: str) -> None:
    recorder = looked_at(["sh", "-c", text, "$"])
    again = looked_at(["sh", "-c", text, "$"])
    recorder.look_at(["sh", "-c", ": $A"], is_command=True)
    assert recorder.start == again.start


@pytest.mark.parametrize(
    "unit", ["a;", "'a' ", "$(", "${A:-", "`a` ", "sh -c '", "eval ", "(", "<<E\n", "case a in a) ", "$A "]
)
def test_a_text_of_any_length_costs_a_bounded_number_of_tokens(unit: str) -> None:
    calls = 0
    allowance = Allowance()

    def count(steps: int = 1, /) -> None:
        nonlocal calls
        calls += 1
        allowance.work(steps)

    with pytest.raises(UnreadableError):
        script_of(unit * 100_000, count)
    assert calls <= MOST_STEPS + 1


def commands_looked_at(text: str) -> int:
    made = 0

    class Counting(Recorder):
        def _judge(self, call: Call) -> str:
            nonlocal made
            made += 1
            return super()._judge(call)

    Counting().look_at(["bash", "-c", text], is_command=True)
    return made


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"A=a{n}; " for n in range(1000)) + "p $A",
        "for A in " + "a " * 900 + "; do p $A; done",
        "".join(f"A{n}='b c'; " for n in range(200)) + "p " + "".join(f"$A{n}" for n in range(100)),
        "A=x; " + "A=$A$A; " * 100 + "p $A",
        "A=$B; B=$C; C=$D; D=$E; E=$F; F=$G; G=$A; p $A",
        'A="$B x"; B="$A y"; p $A $B',
        'f() { f "$@" x; }; f a',
        'A=\'eval "$A"\'; eval "$A"',
        "p $(" * 11 + "p" + ")" * 11,
        "p $((" * 500,
        "".join(f'f{n}() {{ f{n + 1} $1 $@ "x$1"; }}; ' for n in range(30)) + "f0 a b c d e f g h; p",
        "".join(f"set -- a{n} b; " for n in range(150)) + 'p "$@" "$@" $1$2$1$2',
    ],
    ids=lambda text: text[:40],
)
def test_what_is_set_again_and_again_comes_to_an_end(text: str) -> None:
    assert commands_looked_at(text) < 6 * 600


@pytest.mark.parametrize(
    "text",
    ["export A=${A:-b}; p $A", 'A="$A b"; p $A', "f() { p $A; }; f", 'a | p; B="$(p $A)"'],
)
def test_a_text_is_read_once_where_nothing_is_set_that_was_looked_at(text: str) -> None:
    once = commands_looked_at(f"p; {text}")
    assert once == commands_looked_at(text) + 1


@pytest.mark.parametrize(
    "line",
    [
        'export A{n}="${{A{n}:-b}}"',
        "A{n}=${{A{n}:-b}}",
        'log "step {n} of $B"',
        'wget -q -O /m/{n} "https://h/$B/{n}"',
        'echo "a{n}: ${{A{n}}}" >> /x',
        '[ -n "$A{n}" ] && ARGS="$ARGS --o{n}=$A{n}"',
        "ARGS+=(--o{n} v{n})",
        "pip install --no-cache-dir p{n}==1.{n}",
    ],
)
def test_a_start_script_of_seventy_lines_is_read(line: str) -> None:
    lines = ['log() { echo "[$(date +%T)] $*"; }', *(line.format(n=number) for number in range(70)), "p --port 80"]
    found = looked_at(["bash", "-c", "\n".join(lines)])
    assert found.start is None
    assert [one.line for one in found.commands] == [["--port", "80"]]


def test_so_is_one_of_sixty_checks() -> None:
    checks = [f'if [ -z "$SETTING_{n}" ]; then echo "SETTING_{n} is not set"; exit 1; fi' for n in range(60)]
    assert looked_at(["bash", "-c", "\n".join([*checks, "p $A"])]).commands


def test_a_text_is_read_again_where_a_function_gets_another_body_behind_its_call() -> None:
    text = "f() { :; }; f --gpu; eval 'f() (p $1)'"
    assert commands_looked_at(f"p; {text}") == commands_looked_at(text) + 2


@pytest.mark.parametrize("value", ["env -u", "exec -a", "timeout -k", "sudo -u", "nice -n", "xargs -n", "env", "$(("])
def test_a_command_that_ends_where_a_word_is_missing_is_no_error(value: str) -> None:
    looked_at(["sh", "-c", "$E; env $E", "$E", value], env=[{"name": "E", "value": value}])
    looked_at(["sh", "-c", f"A='{value}'; $A; eval $A"])


@pytest.mark.parametrize("options", [20, 40])
@pytest.mark.parametrize("before", [[], ["p"]], ids=["the first", "one behind another program"])
def test_a_shell_with_more_options_than_anybody_writes_is_unread(before: list[str], options: int) -> None:
    found = looked_at([*before, "bash", *["-o", "posix"] * options, "-c", "p $A"])
    assert (found.start is None) is (options == 20)


@pytest.mark.parametrize("blanks", [3000, 5000])
def test_a_value_with_more_blanks_than_anybody_writes_is_not_split(blanks: int) -> None:
    found = looked_at(["sh", "-c", "p $E"], env=[{"name": "E", "value": f"a{' ' * blanks}b"}])
    assert len(found.commands) == (1 if blanks == 3000 else 0)
