"""Words and texts for shells that are dearest to decide on."""

import json
from collections.abc import Iterator
from typing import Any

from policies.frameworks.allowance import MOST_EXPANDED
from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.settings import SettingIndex
from policies.size import MOST_SHARES
from tests.policies.pods import container, pod

Worst = tuple[str, dict[str, Any]]
_INDEX = SettingIndex(BUILT_IN)
_SETTINGS = "x," + "".join(f"{one}={'a,' if one in _INDEX.lists else '0.1,'}" for one in _INDEX.variables)


def makers(size: int) -> Iterator[Worst]:
    """Yield pods of a few KiB, whose texts make much of a few words, and those with such texts over and over."""
    ways = f"for X in '' --mem --gpu --gpu-m --gpu-mem {' '.join('abcdefgh')}\ndo x {{}}\ndone"
    for count in (25, 50, 100, 200):
        yield (
            f"one of many words {count} times",
            pod("0.2", container(command=["sh", "-c", ways.format("$X " * count)])),
        )
    text = [{"name": "T", "value": ways.format("$X " * 200)}]
    called = "".join(f'f{number}() {{ eval "$T"; }}; f{number}; ' for number in range(5))
    yield "functions of a text", pod("0.2", container(command=["sh", "-c", called], env=text))
    for unit in ("a ", "-a "):
        words = [{"name": "A", "value": unit * 500}]
        yield f"words of {unit!a} 100 times", pod("0.2", container(command=["sh", "-c", "x " + "$A " * 100], env=words))
        traces = [{"name": "PS4", "value": "x " + "$A " * 10}] * min(size // 70, 200)
        yield f"traces with words of {unit!a}", pod("0.2", container(command=["sh", "-c", "x"], env=[*words, *traces]))
    traces = [{"name": "PS4", "value": 'eval "$T"'}] * min(size // 40, 1000)
    yield "traces of a text", pod("0.2", container(command=["sh", "-c", "x"], env=[*text, *traces]))
    quotes = f"for X in {' '.join('abcdefghijklmn')}; do x y$X{chr(39) * 1200}; done"
    bodies = (
        f"T='{'ls;' * 100}'; for X in {' '.join(f'/{one}/su' for one in 'abcdefghijklmno')}; do $X{'<<<$T' * 80}; done"
    )
    yield "shells of other users that read texts", pod("0.2", container(command=["bash", "-c", bodies]))
    for unit in ("su ", "sudo x;", "set -e A;"):
        text_for_zsh = unit * (min(size, 3000) // len(unit))
        yield f"{unit!a} in a text that is not read", pod("0.2", container(command=["zsh", "-c", text_for_zsh]))
    for unit in ("1", "1 ", ">1", "> ", "1>|"):
        started = f"sudo {filled(unit, size)}"
        yield f"sudo and {unit!a} in a text that is not read", pod("0.2", container(command=["zsh", "-c", started]))
    for name, started in (("one text", ways.format("$X " * 100)), ("a word of many parts", quotes)):
        yield f"{name} in each hook", pod("0.2", container(**_in_hooks(*[started] * 6)))


def _in_hooks(started: str, *texts: str) -> dict[str, Any]:
    on = [{"exec": {"command": ["sh", "-c", one]}} for one in texts]
    probes = dict(zip(("startupProbe", "livenessProbe", "readinessProbe"), on, strict=False))
    return {"command": ["sh", "-c", started], "lifecycle": {"postStart": on[3], "preStop": on[4]}, **probes}


def word_lists(size: int) -> Iterator[Worst]:
    for unit in (["sh", "-c", "a"], ["env", "-u"], ["exec", "-a"], ["bash", "-o"], ["su", "-c"]):
        count = min(4000, size // 8) // len(unit)
        yield f"words of {unit}", pod("0.2", container(command=["vllm", "$A", *unit * count]))
        value = [{"name": "E", "value": " ".join(unit * (size // len(" ".join([*unit, ""]))))}]
        ways = "".join(f"A={letter};" for letter in "abcdefghijklmn")
        for text in ("vllm $E", f"{ways}eval $A $E", "for A in $E; do eval $A $E; done", 'set -- $E; vllm "$@"'):
            yield f"{text[-20:]!a} of {unit}", pod("0.2", container(command=["sh", "-c", text], env=value))

    for name, first, word in (
        ("variables for a command", "env", "A{}="),
        ("options for xargs", "xargs", "-{};"),
        ("texts that no shell can read", "x", "{{`sh -c {}"),
        ("texts for eval", "x", "eval `-gp{}"),
    ):
        many = [word.format(number) for number in range(min(2000, size // len(word) // 2))]
        yield name, pod("0.2", container(command=[first, *many, "`"]))

    for name, unit in (
        ("env env …", ["env"]),
        ("python3 -u -u …", ["python3", *["-u"] * 10_000]),
        ("timeout 1 1 …", ["timeout", *["1"] * 10_000]),
        ("--gp=1 --gp=1 …", ["--gp=1"]),
        ("one-letter words", ["a"]),
        ("empty words", [""]),
    ):
        once = len(json.dumps(unit))
        yield name, pod("0.2", container(image="vllm/vllm-openai:v1", command=unit * (size // once + 1)))
    for name, word in (
        ("one long word", "x"),
        ("one long option", "-"),
        ("one long option of a framework", "--gpu-memory-utilization"),
        ("one word of references", "$(A)"),
        ("one word of open references", "$("),
        ("one word of dollars", "$"),
        ("one word of python", "/python"),
        ("one word of another alphabet", "é"),
    ):
        yield name, pod("0.2", container(command=[filled(word, size)], env=env(1)))
    long = filled("9", size)
    yield "one long number", pod("0.2", container(args=[f"--gpu-memory-utilization={long}"]))
    yield "one long image", pod("0.2", container(image=filled("a/", size)))


def shell_texts(size: int) -> Iterator[Worst]:
    yield "open braces", pod("0.2", container(command=["sh", "-c", "{ " * 1500 + "a;" * 1500]))
    for unit in (
        "-a ", "-g ", "-gp ", "-gpx ", "--gpu-memory-utilizatio ", "-gp=0 ", "--", "- ", "-_", "=", " ", "\\\n", "\\_",
        "'", "$A ", "${A}", "${A ", "$(", "`", "A=1 ", "for ", "for  a", "read ", "$A=", "--$A ", "-gp-gp", "-gp=-gp=",
        "-z`", "-z{", "{", "a{", ":", ", ", "XLA_PYTHON_CLIENT_MEM_FRACTION ", "XLA_PYTHON_CLIENT_MEM_FRACTIO=", "X",
        ";", "a;", "'a'", "$(a) ", "`a`", "${A:-x}", "A=1 ", "export A=1;", "eval a;", "sh -c a;", "$((1))", "(",
        "<<E\nE\n", "[[ a ]] ", "a=(b);", "#\n", "$'\\055'", "{a,b} ", ">a ", "${A:-", "x() { a; };", "; ", "\n", "$1",
        "\x00-", "-\x00", "-\x00*", "\x7f", "--backend-config ", "--backend-config=tensorflow,gpu-memory-fraction=0 ",
    ):  # fmt: skip
        text = f"$A;{filled(unit, size)}"
        yield f"a shell's text of {unit!a}", pod("0.2", container(command=["sh", "-c", text], env=env(1, "-gp=0")))
        hook = {"postStart": {"exec": {"command": [f"{text} XLA_PYTHON_CLIENT_MEM_FRACTION=0.1 -gp=0"]}}}
        yield f"a hook's text of {unit!a}", pod("0.2", container(lifecycle=hook))
    yield from _own_names(size)
    yield from _long_ones(size)
    yield from _of_tools(size)
    for unit in ("a;", "`a`", "eval a;", "'a' "):
        text = f"$A;{filled(unit, size // MOST_SHARES)}"
        yield f"many shells' texts of {unit!a}", _alike(MOST_SHARES, command=["sh", "-c", text])
        named = f"{text} x serve CUPY_GPU_MEMORY_LIMIT"
        yield f"many shells' texts of {unit!a} and names", _alike(MOST_SHARES, command=["sh", "-c", named])


def _own_names(size: int) -> Iterator[Worst]:
    functions = "".join(f"{one}(){{ a;}};" for one in ("read", "eval", "env", "su"))
    for first, unit in (
        ("alias env read;read(){ a;};", "exec env nice read -a A;"),
        ("alias env sudo read;", "env env env read A;"),
        (f"set -- a b c;a(){{ shift;}};{functions}alias env read;", "-u sh exec sh -c do fi X env hash | "),
        (f"A=$1;{functions}", "sed done bash -c exec env;"),
    ):
        text = f"{first}{filled(unit, min(size, 3000))}"
        yield f"own names before {unit!a}", pod("0.2", container(command=["sh", "-c", text]))


def _long_ones(size: int) -> Iterator[Worst]:
    kept = "x" * (size // 2)
    nested = f"# for \\\n{kept} \\\n"
    for number in range(8):
        nested = f"sh <<'E{number}'\n{nested}\nE{number}"
    calculated = f"${{A[1{filled(' ', size)}}}"
    for _ in range(8):
        calculated = f"$(( {calculated} ;) )"
    for name, words in (
        ("commands like arithmetic in one another", ["sh", "-c", f"x {calculated}"]),
        ("backslashes", ["sh", "-c", f"{filled(chr(92), size // 2)} \\\n$A"]),
        ("lines for awk", ["awk", "{" + filled("\n", size // 2)]),
        ("lines for sed", ["sed", "{" + filled("\n", size // 2)]),
        ("elements of arrays", ["sh", "-c", f"{'a[;' * 400}{kept}$A"]),
        ("here-documents in one another", ["sh", "-c", f"{nested}\n: $A"]),
        ("a word for date", ["sh", "-c", f"x $(date +{kept})"]),
        ("a word for sed", ["sh", "-c", f"sed s/e{kept}/b/"]),
        ("brackets that close nothing", ["sh", "-c", f"x ${{A[{filled(']a', size)}}}"]),
    ):
        yield name, pod("0.2", container(command=words, env=env(1)))


def _of_tools(size: int) -> Iterator[Worst]:
    for tool in ("basename", "date", "mktemp", "printf", "seq", "stat -c %s", "sed"):
        for unit in ("1", "1-", "%d", "a/", "0."):
            text = f"x $({tool} {filled(unit, min(size, 44_000))}{'/' * (unit != 'a/')})"  # longer ones are not read
            yield f"{tool} of {unit!a}", pod("0.2", container(command=["bash", "-c", text]))


def _alike(count: int, **fields: Any) -> dict[str, Any]:
    """Make a pod of so many containers with a share."""
    several = [container(f"c{n}", **fields) for n in range(count)]
    return pod(None, *several, annotations={f"container.gpu-share.dev/c{n}": "0.01" for n in range(count)})


# Each in front of its unit, which comes again and again: the dearest of 12,000 texts that were put together by chance.
_MIXED = (
    (
        "A=1 \\\n--gpu-memory-utilization=0.1  [[ a ]] `echo $A` ",
        "{a,b} $A eval a;f() { vllm serve m $1-memory-utilization=0.95; }; export -f f; bash -c 'f --gpu'\n",
    ),
    (
        "exec {a,b} | x() { a; };sudo [[ a ]] $(echo $A) ",
        "A+=$A;C='--gpu sh'; env A=$C -c 'vllm serve m ${A}-x=0.95'\n{a,b} <<E\nE\n{a,b} $A=$A=- $A ",
    ),
    (
        "eval a;${A#a}eval a;{a,b} A=1 source a;for A in a b;do read A;f $A;-a ",
        "{a,b} read A;time a;f() { $1; };ray status --address $B || ray submit -- x.py; ray logs $B {a,b} & done;",
    ),
    ("alias a=b;-a  sh -c '$A';case a in a) b;;esac;| nice ", "$A=-g  $(a) A+=$A;exec sed s/a/b/ ${A}xargs "),
)


def mixed(size: int) -> Iterator[Worst]:
    """Yield pods with texts of many kinds of commands, in one container and in several with hooks."""
    for first, unit in _MIXED:
        text = first + filled(unit, min(size, 12_000))
        yield f"a mixed text of {unit[:40]!a}", pod("0.2", container(command=["bash", "-c", text], env=env(1, "-gp=0")))
        part = first + filled(unit, min(size, 48_000) // 32)
        hook = {"postStart": {"exec": {"command": ["sh", "-c", part]}}}
        several = _alike(32, command=["sh", "-c", part], args=["$A"], lifecycle=hook)
        yield f"mixed texts of {unit[:40]!a}", several


def beside_texts(size: int) -> Iterator[Worst]:
    """Yield pods with a text that takes all steps, and much beside it: variables and containers without a share."""
    many = min(2000, size // 40)
    hidden = [container(f"c{n}") for n in range(min(500, size // 60))]
    variables = [*env(many, "$(A)", "V"), *env(1, "x")]
    for unit in ("! a;\nsh<<<$A;\n((A=1));", "export A=1; A=$B; env A=$B "):
        started = container(command=["bash", "-c", filled(unit, min(size, 6500))], env=variables)
        yield f"much beside a text of {unit[:20]!a}", pod("0.2", started, *hidden)
    assigning = "A+=$A;C='-eval a;-gpu sh'; env A=$C [asource a;'vllm serve m ${A}-x=5'\n{a,b} <<E\nE\n$AA+=$A;"
    for count in (many // 4, many // 2, many):
        referring = [*env(1, "-gp=0"), *env(count, "$(A)", "V")]
        command = ["sh", "-c", filled(assigning, min(size, 6000))]
        started = container(image="nvidia/jax:1", command=command, args=["$(A)"] * 30, env=referring)
        yield f"{count} references beside a text that assigns", pod("0.2", started)


def references(size: int) -> Iterator[Worst]:
    """Yield pods whose texts refer again and again to what is long, and drop it."""
    one_of_many = "for A in a b c d e f g h i j k l m n o p; do x {}; done"
    for name, text, value in (
        ("a value to which more is appended", 'x; if x; then A="$A x"; fi; x ' + "${A:+x} " * 90, "-a "),
        ("one of many values", one_of_many.format("$A " * 300), "a"),
        ("parts of a value", "x " + "${A%%b*} " * 200, "a"),
        ("a long value for tools", 'sed "$A"; echo "$A" | x; alias "$A"\n' * 100, "-a "),
    ):
        yield name, pod("0.2", container(command=["sh", "-c", text], env=env(1, f"b{filled(value, size)}")))
    for count, long in ((40, 3000), (200, size)):
        text = f"A='{filled('x = 1; ', long)}'\n" + 'x "$A"; f "$A"; echo "$A" > y\n' * count
        yield f"a literal of {long} characters {count} times", pod("0.2", container(command=["sh", "-c", text]))
    grown = container(command=["sh", "-c", f"D=$0; {'I+=$D; ' * 40}", filled("a ", size)])
    yield "a value that a long one is appended to", pod("0.2", grown)
    values, patterns = (" ".join(f"{one}{rest}" for one in "abcdefghijklmno") for rest in ("-" * 2000, "["))
    parts = f"for A in {values}\ndo for P in {patterns}\ndo x {'${A#$P} ' * 100}\ndone\ndone"
    yield "parts of many values", pod("0.2", container(command=["sh", "-c", parts]))
    for sign in (",", ":", ";", "ab,", " "):
        text = f"{_SETTINGS}{'$(A)' * (MOST_EXPANDED // 2000 - 1)}$(B)"
        yield f"settings in front of {sign!a}", pod("0.2", container(command=[text], env=env(1, filled(sign, 2000))))
    names = " ".join(f"${'a' * at}b{'a' * (95 - at)}" for at in range(31, 95))
    texts = [f"{names} {filled('a', size // 6)} \r{number}" for number in range(6)]
    yield "names that are almost there", pod("0.2", container(**_in_hooks(*texts)))


def filled(unit: str, size: int) -> str:
    return unit * (size // len(unit))


def env(count: int, value: str = "", name: str = "A") -> list[dict[str, Any]]:
    return [{"name": name if count == 1 else f"{name}{number}", "value": value} for number in range(count)]
