"""A text gets the words beside it as $1 where a shell runs it, and is a sentence with a price in it where none does."""

import pytest

from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.framework import Framework
from policies.grant import Denied, Grant
from tests.policies.pods import container, decided, only_container, pod, policies
from tests.webhook.reviews import answer, call, patch_of, patched

SLICED = policies("strategy: time-slicing", "handover: [cdi]")
WITHIN = "--gpu-memory-utilization=0.2"
APPENDED = [one for one in BUILT_IN if one.memory is not None and one.memory.spellings[0].variable is None]
SENTENCES = (
    "{% if x %}costs $9.99 now{% endif %}",
    "a $1.5 b",
    "Price: $5.00, was $8.00.",
    "it costs $0.50",
    "a ${1}5 b",
    "sed 's/a/b/' $1.txt",
    '{"price": "$5.00", "free": "$0.00"}',
    "f() { echo $1.5; }",
    "vLLM, vllm, SGLang and triton (it's $5.00",
    "say $1.5 by bash",
)
GIVEN = (
    ["sh", "-c", "vllm serve m ${1}5", "x", WITHIN],
    ["timeout", "5", "sh", "-c", "vllm serve m ${1}5", "x", WITHIN],
    ["retry", "3", "sh", "-c", "vllm serve m ${1}5", "x", WITHIN],
    ["./run.sh", "-c", "vllm serve m ${1}5", "x", WITHIN],
    ["./run.sh", "-c", "vllm serve m && ( ${1}5", "x", WITHIN],
    ["su", "root", "-c", "vllm serve m ${1}5", "x", WITHIN],
    ["su", "root", "--", "-c", "vllm serve m ${1}5", "x", WITHIN],
    ["su", "root", "--", "-c", "-e", "vllm serve m ${1}5", "x", WITHIN],
    ["su", "root", "--", "+c", "vllm serve m ${1}5", "x", WITHIN],
    ["./x", "+ec", "vllm serve m ${1}5", "x", WITHIN],
    ["runuser", "root", "-cvllm serve m ${1}5", "--", "x", WITHIN],
    ["runuser", "-p", "root", "--comm", "vllm serve m ${1}5", "--", "x", WITHIN],
    ["runuser", "-p", "root", "--session-command=vllm serve m ${1}5", "--", "x", WITHIN],
    ["perl", "-e", 'exec "sh", "-c", q(vllm serve m ${1}5), @ARGV', "--", "x", WITHIN],
)
GIVEN_IN_TEXTS = (
    f"if a; then O=-c; else O=-x; fi; sh $O 'vllm serve m ${{1}}5' x {WITHIN}",
    f"retry 3 sh ${{A:+-e}} -c 'vllm serve m ${{1}}5' x {WITHIN}",
    f"$SHELL -c 'vllm serve m ${{1}}5' x {WITHIN}",
)


LINES = [
    (one, fields)
    for one in APPENDED
    for fields in ({"command": one.programs[0].split()}, {"args": ["--model=m"]} if one.image_takes_arguments else {})
    if fields
]


@pytest.mark.parametrize("text", SENTENCES)
@pytest.mark.parametrize(("framework", "fields"), LINES)
def test_a_price_in_a_word_of_a_framework_is_granted_and_stays_beside_what_is_appended(
    framework: Framework, fields: dict[str, list[str]], text: str
) -> None:
    args = [*fields.get("args", ()), "--chat-template", text]
    on = pod("0.2", container(image=f"x/{framework.images[0]}:v99.0", **fields | {"args": args}))
    made = patched(on, answer(call(on), SLICED))
    assert only_container(made)["args"][:-1] == args
    again = answer(call(made), SLICED)
    assert again["allowed"], again
    assert not patch_of(again)


@pytest.mark.parametrize("words", [*GIVEN, *(["bash", "-c", text] for text in GIVEN_IN_TEXTS)])
def test_a_shell_that_gets_words_puts_them_into_its_text(words: list[str]) -> None:
    decision = decided(pod("0.2", container(command=words)), SLICED)
    assert isinstance(decision, Denied)
    assert decision.deny.code == "MemoryArgumentAboveShare"


def test_an_option_that_may_be_there_makes_no_text_of_a_sentence() -> None:
    text = f"vllm serve m ${{DEBUG:+--debug}} --chat-template 'costs $5.00' {WITHIN}"
    assert isinstance(decided(pod("0.2", container(command=["bash", "-c", text])), SLICED), Grant)
