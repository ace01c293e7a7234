"""Patterns that mean the same in every Python that we run on."""

import subprocess
import sys

# In Python 3.11.0 to 3.11.4 a possessive repeat keeps what its last turn took before it failed, unless that turn is an
# atomic group, or fails before anything but single characters: https://github.com/python/cpython/issues/106052
_SCRIPT = r"""
import importlib, pkgutil
import packaging.version  # which looks at Python's version itself
from re import _compiler, _constants, _parser

compiled, compile = set(), _compiler.compile
def recording(pattern, flags=0):
    compiled.add(pattern)
    return compile(pattern, flags)
_compiler.compile = recording

for room in ("certs", "console", "plugin", "policies", "program", "webhook"):
    for module in pkgutil.walk_packages([room], f"{room}."):
        importlib.import_module(module.name)

import msgspec
from policies.decision import decide
from policies.pod import Pod
from tests.bypass.corpus import corpus
from tests.policies.pods import policies
for one in corpus():  # some patterns are made for what is judged
    if one.by == "webhook":
        decide(msgspec.convert(one.pod, Pod), "team", policies(one.rules))

def repeats(what):
    if isinstance(what, tuple | list | _parser.SubPattern):
        if len(what) == 2 and what[0] is _constants.POSSESSIVE_REPEAT:
            yield what[1][2]
        for part in what:
            yield from repeats(part)

ONE = {_constants.LITERAL, _constants.NOT_LITERAL, _constants.IN, _constants.ANY}

def is_safe(turn):
    *first, (operator, what) = turn
    if not first and operator in {_constants.ATOMIC_GROUP, _constants.BRANCH}:
        return operator is _constants.ATOMIC_GROUP or all(map(is_safe, what[1]))
    cannot_fail = operator is _constants.POSSESSIVE_REPEAT and what[0] == 0
    return all(one in ONE for one, _ in first) and (operator in ONE or cannot_fail)

assert len(compiled) > 300
print(*(one for one in compiled if not all(map(is_safe, repeats(_parser.parse(one))))), sep="\n", end="")
"""


def test_no_possessive_repeat_keeps_what_a_failed_turn_took() -> None:
    ran = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=False, timeout=120)
    assert (ran.returncode, ran.stderr, ran.stdout) == (0, "", "")
