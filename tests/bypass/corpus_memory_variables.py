"""Variables with texts in them: for a script of the image, or for a shell, which runs some at its start."""

from collections.abc import Iterator

from tests.bypass.attempt import variable
from tests.bypass.corpus_memory_shell import UNREAD
from tests.bypass.greedy import CONFIG_MAP, USE, Greedy


def of_variables() -> Iterator[Greedy]:
    """Variables that hold a command line, a part of one, or what a shell runs at its start."""
    for value in (f"{USE}=0.95", f"--port 1 {USE} 0.95 -x", "--gpu_memory_utilization 0.95"):
        yield Greedy(f"the variable {value}", {"env": [variable("ARGS", value)]}, "lowered", "lowered")
    long = {"env": [variable("ARGS", f"{USE}={'0' * 65}e1")]}
    yield Greedy("a value that is longer than what is looked at", long, "lowered", "denied")
    for value in (f"vllm serve m '{USE}'=0.95", "XLA_PYTHON_CLIENT_MEM_FRACTION=0.95 python x"):
        yield Greedy(f"the variable {value}", {"env": [variable("RUN", value)]}, "warned", "denied")
    within = [variable("ARGS", f"{USE}=0.1"), variable("HELP", "see --gpu and --device"), variable("X", "a-b --c")]
    yield Greedy("variables with nothing above the share", {"env": within}, "kept", "kept")
    parts = [variable("A", "--gpu"), variable("ARGS", "$(A)-memory-utilization=0.95")]
    yield Greedy("a variable that goes on another one", {"env": parts}, "warned", "denied")
    hidden = "$(vllm serve m --gpu${Z}-memory-utilization=0.95)"
    for name in ("PS4", "BASH_ENV", "BASH_FUNC_x%%"):
        text = f"() {{ {hidden}; }}" if "%" in name else hidden
        fields = {"command": ["bash", "-xc", "x"], "env": [variable(name, text)]}
        yield Greedy(f"a text in {name}", fields, "warned", "denied")
    function = [variable("BASH_FUNC_curl%%", '() { vllm serve m "$@"; }'), *UNREAD]
    yield Greedy("a tool's function", {"command": ["bash", "-c", "curl $EXTRA"], "env": function}, "warned", "denied")
    for name, text in (("LANG", "vllm serve m $LANG"), ("HOME", "vllm serve m ~"), ("HOME", "vllm serve m ${X:-~}")):
        fields = {"command": ["sh", "-c", text], "env": [variable(name, None, **CONFIG_MAP)]}
        yield Greedy(f"{text} of a ConfigMap", fields, "warned", "denied")
    for text in (
        "if x; then A=z; fi; vllm serve m $A-memory-utilization=0.95",
        "vllm serve m $A-memory-utilization=0.95",
    ):
        fields = {"command": ["sh", "-c", text], "env": [variable("A", "--gpu")]}
        yield Greedy(f"{text} of env", fields, "limited", "denied")
    yield Greedy("words of a file", {"command": ["xargs", "-a", "/x", "vllm", "serve", "m"]}, "warned", "denied")
