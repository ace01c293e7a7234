"""Every page is up to date, leads only where something is, and is written in the field's words."""

import re
from itertools import chain
from pathlib import Path

import pytest

from tests.docs.generate import PARTS, generated
from tests.docs.pages import PAGES, ROOT, anchors, name, prose

EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=name)
LONGEST_LINE = 130
ROOMS = "certs|docs|manifests|plugin|policies|program|tests|webhook"

# Words that readers do not search for, and those of the field.
WORDS = {
    r"refus\w*": "deny, reject",
    r"let(?:s|ting)? (?:through|past)|pass(?:ed|es)? over": "admit",
    r"folders?": "directory",
    r"get(?:s|ting)? (?:past|around)|leads? around": "bypass",
    r"(?<!there )is no (?:decimal|directory|number|share|pod|namespace)\b": "is not a, must be",
    r"that (?:are|is) not there": "simulated",
    r"hand(?:s|ed|ing)? out": "allocate, advertise",
    r"authorit(?:y|ies)": "CA, CA bundle, issuer",
    r"out of the way": "disable",
    r"sick|ill\b": "unhealthy",
}


@EVERY_PAGE
def test_what_is_generated_is_up_to_date(page: Path) -> None:
    assert generated(page.read_text()) == page.read_text()


def test_every_generated_part_is_on_one_page() -> None:
    found = chain.from_iterable(re.findall(r"^<!-- ([a-z ]+) -->$", page.read_text(), re.MULTILINE) for page in PAGES)
    parts = sorted(PARTS)
    assert sorted(part for part in found if not part.startswith("end of ")) == parts


@EVERY_PAGE
def test_every_link_between_the_documents_leads_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([\w./-]*)#?([\w-]*)\)", page.read_text()):
        to = (page.parent / target).resolve() if target else page
        assert to.exists(), target
        if anchor:
            assert anchor in anchors(to.read_text()), f"{target}#{anchor}"


@EVERY_PAGE
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    for path in re.findall(rf"`((?:{ROOMS})/[\w./-]*)`", page.read_text()):
        assert (ROOT / path).exists(), path


def test_every_place_on_the_map_is_there() -> None:
    rows = re.findall(r"^\| .* \| (.*) \|$", (ROOT / "docs" / "map.md").read_text(), re.MULTILINE)
    places = [path for row in rows for path in re.findall(r"`([^`]*)`", row)]
    assert len(places) > len(rows) - 2
    assert [path for path in places if not (ROOT / path).exists()] == []


def test_every_directory_of_the_code_is_on_the_map() -> None:
    text = (ROOT / "docs" / "map.md").read_text()
    rooms = {path.parent.relative_to(ROOT) for depth in ("*", "*/*") for path in ROOT.glob(f"{depth}/__init__.py")}
    assert [str(room) for room in sorted(rooms) if f"`{room}/" not in text] == []


@EVERY_PAGE
def test_prose_is_wrapped(page: Path) -> None:
    lines = [line for line in prose(page.read_text()).splitlines() if not line.startswith("|")]
    assert [line for line in lines if len(line) > LONGEST_LINE] == []


@EVERY_PAGE
def test_a_page_uses_the_words_of_the_field(page: Path) -> None:
    text = re.sub(r"`[^`]*`", "", prose(page.read_text()))
    found = {
        match[0]: instead
        for word, instead in WORDS.items()
        for match in re.finditer(rf"\b(?:{word})", text, re.IGNORECASE)
    }
    assert found == {}


def test_every_decision_is_in_the_list_of_them() -> None:
    directory = ROOT / "docs" / "decisions"
    pages = sorted(page for page in directory.glob("*.md") if page.name != "README.md")
    titles = [page.read_text().partition("\n")[0].removeprefix("# ") for page in pages]
    rows = re.findall(r"^\| (\d+) \| \[(.*)\]\((.*)\) \|$", (directory / "README.md").read_text(), re.MULTILINE)
    assert rows == [(str(int(page.name[:4])), title, page.name) for page, title in zip(pages, titles, strict=True)]
