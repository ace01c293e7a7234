"""Pods with texts that no shell of admission's reads, so that all that may be computed in them counts."""

from collections.abc import Iterator

from policies.frameworks.allowance import MOST_EXPANDED, MOST_MENTIONS
from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.settings import SettingIndex
from policies.size import MOST_SHARES
from tests.bench.worst_texts import Worst
from tests.policies.pods import container, pod

_LISTS = " ".join(SettingIndex(BUILT_IN).lists)
OWN_LISTS = [f"T{number}_CONF" for number in range(64)]  # of the cluster's own entries in the bench
_EVERY = {
    "": _LISTS,
    "and own ": " ".join([_LISTS, *OWN_LISTS]),
    "and values of own ": "=a:1 ".join([_LISTS, *OWN_LISTS]),
}


def unread(size: int) -> Iterator[Worst]:
    """Yield pods of about *size* bytes."""
    for names, lists in _EVERY.items():
        for unit in ("`", "`a", "s", "set ", "env -u ", "a:", ";", "setenv A b ", "PYTORCH_ALLOC_CONF="):
            text = f"{lists} {unit * (size // len(unit))}"
            for shell in (["fish", "-c", text], ["sh", "-c", f"{text}\r"], ["x", text], ["env", "-S", text]):
                yield f"{shell[0]} of lists {names}before {unit!a}", pod("0.2", container(command=shell))
        long = [{"name": "A", "value": "`a" * 1000}]
        text = f"IFS $B {lists} {'$(A)' * (MOST_EXPANDED // 2000 - 1)}{'`a' * (size // 2)}\\\n"
        yield f"references and lists {names}", pod("0.2", container(command=["fish", "-c", text], env=long))
    numbers = [
        {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        *({"name": name, "value": f"$({of})" * 16} for name, of in zip("ABD", "CAB", strict=True)),
    ]
    word = f"-g{'_' * size}{'$(D)' * 6}"
    yield "numbers behind a long option", pod("0.2", container(command=["x", word], env=numbers))
    known = sorted({program.rpartition(" ")[2] for one in BUILT_IN for program in one.programs}, key=len)
    single = [one for one in known if any(one in entry.programs for entry in BUILT_IN)]
    often = MOST_MENTIONS // MOST_SHARES
    starts = {
        "own programs": " ".join(f"-m team{number}.server" for number in range(64)),
        "known programs": " ".join(known[:often]),
        "known programs and text": " ".join([*known[:often], *["a b"] * 300]),
        "named programs": "\n".join(f"sed {one.programs[0]}" for one in BUILT_IN[:often] if one.programs),
        "programs behind a tool": f"sed p q r s t {' '.join(single[:often])}",
        "times the same program": "sed\n" * 20 + "sed p q r s t vllm serve\n" * often,
    }
    shares = {f"container.gpu-share.dev/c{number}": "0.01" for number in range(MOST_SHARES)}
    for name, text in starts.items():
        several = [container(f"c{number}", command=["bash", "-c", text]) for number in range(MOST_SHARES)]
        yield f"many {name}", pod(None, *several, annotations=shares)
