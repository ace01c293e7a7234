"""What is long is read as what is short: code that pods hand to Python is granted, and no setting hides in it."""

from collections.abc import Sequence
from typing import Any

import pytest

from policies.grant import Denied
from tests.policies.pods import container, decided, granted, pod, policies

SLICED = policies("strategy: time-slicing")
LONG = 6000  # characters
BLANKS, WORD, COMMENT = " " * LONG, "w" * LONG, f"# {'c' * LONG}\n"
HIDDEN = f"{COMMENT}vllm serve m --gpu-mem''ory-utilization=0.95"

# As kfp 2.7 writes them.
INSTALL = """
if ! [ -x "$(command -v pip)" ]; then
    python3 -m ensurepip || python3 -m ensurepip --user || apt-get install python3-pip
fi

PIP_DISABLE_PIP_VERSION_CHECK=1 python3 -m pip install --quiet --no-warn-script-location 'kfp==2.7.0' '--no-deps' \
'typing-extensions>=3.7.4,<5; python_version<"3.9"' && "$0" "$@"
"""
START = f"""program_path=$(mktemp -d)

printf "%s" "$0" > "$program_path/ephemeral_component.py"
_KFP_RUNTIME=true python3 -m kfp.dsl.executor_main {" " * 20} --component_module_path {" " * 20} \
"$program_path/ephemeral_component.py" {" " * 20} "$@"
"""
LAUNCHER = "/var/run/argo/argoexec emissary --loglevel info -- /kfp-launcher/launch --pipeline_name p --run_id r --"
LINES = (
    "    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))",
    "    for epoch in range(epochs):",
    "        opt.zero_grad(); loss.backward(); opt.step()",
    '        print(f"epoch {epoch} loss {loss.item():.4f}")',
)


def component(lines: int) -> list[str]:
    begin = ["", "import kfp", "from kfp.dsl import *", "", "def train(model: Output[Model]):"]
    told = ["--executor_input", '{"inputs":{"parameterValues":{"lr":0.001}}}', "--function_to_execute", "train"]
    return ["sh", "-ec", START, "\n".join([*begin, *LINES * (lines // 4), ""]), *told]


@pytest.mark.parametrize("before", [[], LAUNCHER.split()], ids=["itself", "launcher"])
@pytest.mark.parametrize("installs", [[], ["sh", "-c", INSTALL]], ids=["image", "pip"])
@pytest.mark.parametrize("by", [policies(), SLICED], ids=["mps", "time-slicing"])
def test_a_component_of_kubeflow_pipelines_may_be_long(before: list[str], installs: list[str], by: Any) -> None:
    words = [*before, *installs, *component(150)]
    assert granted(pod("0.2", container(image="team/train:1", command=words)), by).warnings == ()


@pytest.mark.parametrize(
    "words",
    [
        ["python", "-c", "print('$5')\n" + "net = 1\n" * 700],
        ["sh", "-c", f'D={WORD}; echo "$D"'],
        ["sh", "-c", f"D='{'x = 1; ' * 900}'; python -c \"$D\""],
        ["sh", "-c", 'python train.py "--note=$0"', WORD],
    ],
    ids=lambda words: words[2][:20],
)
def test_a_long_literal_is_no_reference(words: list[str]) -> None:
    assert granted(pod("0.2", container(image="team/train:1", command=words)), SLICED).warnings == ()


# Each makes dash or bash start vllm with more than the share.
@pytest.mark.parametrize(
    "words",
    [
        ['eval "$0"', HIDDEN],
        ['sh -c "$0"', HIDDEN],
        ['"$0" "$@"', "sh", "-c", HIDDEN],
        ['"$0" "$@"', "sh", "-ec", 'eval "$0"', HIDDEN],
        ['printf "%s" "$0" > /tmp/a; . /tmp/a', HIDDEN],
        ['printf "%s" "$0" > /tmp/a; sh /tmp/a', HIDDEN],
        ['printf "%s" "$0" | sh', HIDDEN],
        ["sh <<E\n$0\nE", HIDDEN],
        [f"sh <<E\n{HIDDEN}\nE"],
        [f'trap "{HIDDEN}" EXIT'],
        ['f() { eval "$1"; }; f "$0"', HIDDEN],
        ['shift; eval "$1"', "a", "b", HIDDEN],
        [f'export D="{HIDDEN}"; sh -c \'eval "$D"\''],
        [f'D="{COMMENT}vllm serve m --gpu-mem" E=ory-utilization=0.95; eval "$D$E"'],
        [f"D='{BLANKS}vllm serve m --gpu-mem' E=ory-utilization=0.95; $D$E"],
        [f"D='{BLANKS}--gpu-mem' E=ory-utilization=0.95; vllm serve m $D$E"],
        [f"D='{BLANKS}--gpu-memory-utilization'; vllm serve m $D 0.95"],
        [f": ${{D:='{BLANKS}--gpu-mem'}}; vllm serve m ${{D}}ory-utilization=0.95"],
        [f"for D in '{BLANKS}--gpu-mem'; do vllm serve m ${{D}}ory-utilization=0.95; done"],
        ["vllm serve m $1$2", "z", f"{BLANKS}--gpu-mem", "ory-utilization=0.95"],
        ["set -- $1; vllm serve m $1$2", "z", f"{BLANKS}--gpu-mem ory-utilization=0.95"],
        ['vllm serve m --gpu-memory-utilization "$1"', "z", f"0.95{'0' * LONG}"],
        [f"D='{WORD}--gpu-memory-utilization=0.95'; vllm serve m ${{D#{WORD}}}"],
        [f"D='{WORD}--gpu'; vllm serve m ${{D##*w}}-memory-utilization=0.95"],
        [f"D='{WORD}'; vllm serve m ${{D:+--gpu}}-memory-utilization=0.95"],
    ],
    ids=lambda words: words[0].replace(BLANKS, "").replace(WORD, "").replace(COMMENT, "")[:40],
)
@pytest.mark.parametrize("before", [[], ["x"]], ids=["itself", "behind another program"])
def test_no_setting_hides_in_a_long_literal(words: Sequence[str], before: list[str]) -> None:
    decision = decided(pod("0.2", container(command=[*before, "sh", "-c", *words])), SLICED)
    assert isinstance(decision, Denied)
    assert decision.deny.code == "MemoryArgumentAboveShare"
