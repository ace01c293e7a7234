from collections import Counter

import msgspec
import pytest

from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.framework import Framework, Spelling

each = pytest.mark.parametrize("framework", [pytest.param(one, id=one.name) for one in BUILT_IN])

EXPECTED = [
    "tensorflow-serving",
    "tensorflow",
    "pytorch",
    "jax",
    "vllm",
    "sglang",
    "tgi",
    "triton",
    "tensorrt-llm",
    "lmdeploy",
    "djl-serving",
    "mxnet",
    "paddlepaddle",
    "cupy",
    "ollama",
    "llama.cpp",
]


def _spellings(framework: Framework) -> tuple[Spelling, ...]:
    return framework.memory.spellings if framework.memory else ()


def _repeated(words: list[str]) -> list[str]:
    return [word for word, count in Counter(words).items() if count > 1]


def test_the_catalogue_has_every_promised_framework_once() -> None:
    assert [framework.name for framework in BUILT_IN] == EXPECTED


def test_no_image_program_or_setting_belongs_to_two_frameworks() -> None:
    assert _repeated([image for framework in BUILT_IN for image in framework.images]) == []
    assert _repeated([program for framework in BUILT_IN for program in framework.programs]) == []
    assert _repeated([name for framework in BUILT_IN for name in {one.name for one in _spellings(framework)}]) == []


@each
def test_an_entry_says_where_it_is_documented(framework: Framework) -> None:
    assert framework.source.startswith("https://")
    assert framework.note.endswith(".")


@each
def test_an_entry_can_be_recognised(framework: Framework) -> None:
    assert framework.images or framework.programs


@each
def test_an_entry_could_stand_in_the_cluster_policy(framework: Framework) -> None:
    assert msgspec.convert(msgspec.to_builtins(framework), Framework) == framework


@each
def test_a_program_is_words_with_single_spaces_and_no_path(framework: Framework) -> None:
    for program in framework.programs:
        assert program.split(" ") == program.split()
        assert "/" not in program


@each
def test_an_abbreviation_abbreviates_its_argument(framework: Framework) -> None:
    for spelling in _spellings(framework):
        if spelling.shortest is not None:
            assert spelling.argument is not None
            assert spelling.argument.startswith(spelling.shortest)
            assert len(spelling.shortest) < len(spelling.argument)


@each
def test_an_image_takes_arguments_only_where_an_argument_is_set(framework: Framework) -> None:
    if framework.image_takes_arguments:
        assert framework.images
        assert _spellings(framework)[0].argument


def test_what_follows_free_memory_is_not_told_the_share_of_it_again() -> None:
    of_free = {one.name: one.memory.of_free for one in BUILT_IN if one.memory and one.memory.of == "free"}
    assert of_free == {
        "sglang": "0.8",
        "tgi": None,
        "tensorrt-llm": None,
        "lmdeploy": None,
        "mxnet": None,
        "paddlepaddle": None,
    }


def test_only_pytorch_fails_on_its_setting_in_older_versions() -> None:
    assert {one.name: one.memory.since for one in BUILT_IN if one.memory and one.memory.since} == {"pytorch": "2.10"}
