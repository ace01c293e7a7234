"""What an entry of `frameworks` in `_cluster.yaml` cannot say, since it would be found in no pod, or in every one."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from policies.reading.layers import read_layer

if TYPE_CHECKING:
    from policies.errors import Problem
from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.command_line import CommandLine
from policies.frameworks.detection import Catalogue
from policies.frameworks.framework import Framework, Memory, Spelling
from policies.pod import Container

SPELLING = "memory.spellings[0]"


@pytest.mark.parametrize(
    ("entry", "field", "told"),
    [
        ("images: ['a/b:1']", "images[0]", "without its tag"),
        ("images: [/b]", "images[0]", "without its tag"),
        ("memory: {spellings: [{argument: -m}]}", f"{SPELLING}.argument", "two letters or more"),
        ("memory: {spellings: [{variable: A, separator: ' '}]}", f"{SPELLING}.separator", "a comma or a semicolon"),
        (
            "memory: {spellings: [{argument: --aa}], overriddenBy: [{variable: A, separator: ':', source: s}]}",
            "memory.overriddenBy[0].separator",
            "a comma or a semicolon",
        ),
        ("memory: {spellings: [{argument: --aa, separator: ','}]}", f"{SPELLING}.separator", "in a variable"),
        (
            "memory: {spellings: [{variable: A, value: 'a,b={fraction}', separator: ','}]}",
            f"{SPELLING}.separator",
            "in a variable",
        ),
        ("memory: {spellings: [{variable: A, value: ' {fraction}'}]}", f"{SPELLING}.value", "with a space"),
        ("memory: {spellings: [{variable: A, separator: ','}]}", SPELLING, "before the number"),
        (
            "memory: {spellings: [{variable: A, value: 'f: {fraction}', separator: ','}]}",
            f"{SPELLING}.value",
            "and no space",
        ),
        ("memory: {exclusive: true, spellings: [{variable: A}]}", "memory.exclusive", "about two variables"),
        (
            "memory: {exclusive: true, spellings: [{variable: A}, {variable: B, value: '{percent}'}]}",
            "memory.exclusive",
            "about two variables",
        ),
        (
            "memory: {exclusive: true, spellings: [{argument: --aa}, {variable: A}, {variable: B}]}",
            "memory.exclusive",
            "about two variables",
        ),
        ("memory: {spellings: [{argument: --mem, shortest: --memory}]}", f"{SPELLING}.shortest", "no abbreviation"),
        ("memory: {spellings: [{argument: --mem, shortest: '-'}]}", f"{SPELLING}.shortest", "no abbreviation"),
        ("memory: {spellings: [{variable: MEM, shortest: M}]}", f"{SPELLING}.shortest", "no abbreviation"),
        (
            "memory: {spellings: [{variable: A}], overriddenBy: [{argument: --pool, shortest: --s, source: s}]}",
            "memory.overriddenBy[0].shortest",
            "no abbreviation",
        ),
        (
            "memory: {spellings: [{variable: A}], overriddenBy: [{variable: P, begins: 'b: ', source: s}]}",
            "memory.overriddenBy[0].begins",
            "has a space",
        ),
        (
            "memory: {spellings: [{variable: A}], overriddenBy: [{variable: P, harmless: [a b], source: s}]}",
            "memory.overriddenBy[0].harmless",
            "has a space",
        ),
        ("versionImages: ['a/b:2']", "versionImages[0]", "without its tag"),
        (
            f"memory: {{exclusive: true, spellings: [{', '.join(f'{{variable: M{one}}}' for one in range(5))}]}}",
            "memory.exclusive",
            "at most 4",
        ),
        (f"constants: [{{variable: A, value: {'x' * 1025}}}]", "constants[0].value", "at most 1024 characters"),
        (
            f"memory: {{spellings: [{{variable: A, value: '{'x' * 250}={{fraction}}'}}]}}",
            f"{SPELLING}.value",
            "at most 253 characters",
        ),
    ],
)
def test_what_would_be_found_nowhere_or_everywhere_is_a_fault(entry: str, field: str, told: str) -> None:
    problems: list[Problem] = []
    read_layer("_cluster.yaml", f"frameworks: [{{name: x, source: s, {entry}}}]", problems)
    (problem,) = problems
    assert problem.field == f"frameworks[0].{field}"
    assert told in problem.message


@pytest.mark.parametrize("image", ["vllm-openai", "host:5000/acme/llm", "acme/*", "*", "[a-z]/b"])
def test_an_image_is_the_end_of_a_name_or_all_of_it(image: str) -> None:
    problems: list[Problem] = []
    read_layer("_cluster.yaml", f"frameworks: [{{name: x, source: s, images: ['{image}']}}]", problems)
    assert problems == []


def entries(count: int) -> str:
    return f"frameworks: [{', '.join(f'{{name: x{one}, source: s}}' for one in range(count))}]"


def constants(count: int) -> str:
    listed = ", ".join(f"{{variable: V{one}, value: '1'}}" for one in range(count))
    return f"frameworks: [{{name: x, source: s, constants: [{listed}]}}]"


@pytest.mark.parametrize(("made", "most"), [(entries, 64), (constants, 8)])
def test_entries_are_as_many_as_a_review_can_look_for_and_constants_as_a_grant_may_add(
    made: Callable[[int], str], most: int
) -> None:
    for number in (most, most + 1):
        problems: list[Problem] = []
        read_layer("_cluster.yaml", made(number), problems)
        told = [f"expected a list with at most {most} items, got a list: take out 1 of its {most + 1} items"]
        assert [one.message for one in problems] == told[: number - most]


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ("memory: {{spellings: [{{variable: {name}}}]}}", "memory.spellings[0].variable"),
        ("constants: [{{variable: {name}, value: '1'}}]", "constants[0].variable"),
        ("programs: [{name}]", "programs[0]"),
        ("otherPrograms: [a {name}]", "otherPrograms[0]"),
        ("optionPrefixes: [{name}]", "optionPrefixes[0]"),
        ("images: [{name}]", "images[0]"),
        ("versionImages: [{name}]", "versionImages[0]"),
    ],
)
def test_a_name_that_is_longer_than_any_real_one_is_a_fault(entry: str, field: str) -> None:
    problems: list[Problem] = []
    for length in (250, 2_000):
        written = entry.format(name="A" * length)
        read_layer("_cluster.yaml", f"frameworks: [{{name: x, source: s, {written}}}]", problems)
    (problem,) = problems
    assert problem.field == f"frameworks[0].{field}"
    assert "at most 253 characters" in problem.message


def test_the_longest_names_are_looked_for_though_each_begins_as_another_does() -> None:
    names = ["A" * length for length in range(2, 254)]
    entries = [
        Framework(
            name="x",
            source="s",
            programs=tuple(names),
            memory=Memory(spellings=tuple(Spelling(variable=name) for name in names)),
        )
    ]
    line = CommandLine(Container(name="a", command=["sh", "-c", names[-1]]))
    found = Catalogue(BUILT_IN, entries).within(line, lambda _: None)
    assert found is not None
    assert found.name == "x"
