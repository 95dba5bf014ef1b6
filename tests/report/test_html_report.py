"""The HTML report: valid, self-contained, accessible, and deaf to hostile names."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from isorun.report import Column, Table, html, html_parts

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Outline(HTMLParser):
    """Collects elements, and checks that every one is closed where it should be."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.styles = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.styles.append(data)

    def attributes(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture
def outline(any_result):
    return Outline(html.render(any_result))


def test_every_element_is_closed(outline):
    assert outline.open == []


def test_there_is_no_script_and_nothing_is_loaded(outline):
    names = {name for name, _ in outline.elements}
    assert not names & {"script", "link", "iframe", "object", "embed", "img", "base", "form", "foreignobject"}
    for _, attributes in outline.elements:
        assert not [name for name in attributes if name.startswith("on") or name in {"src", "style", "srcset"}]
        assert attributes.get("href", "#").startswith("#")
    assert not re.search(r"url\(|@import|expression\(", "".join(outline.styles))


def test_the_policy_allows_nothing_but_the_style_of_the_page(outline):
    (policy,) = [meta["content"] for meta in outline.attributes("meta") if "http-equiv" in meta]
    (style,) = outline.styles
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_every_table_has_a_caption_and_scopes(outline):
    names = [name for name, _ in outline.elements]
    assert names.count("caption") == names.count("table")
    assert all(heading.get("scope") in {"col", "row", "colgroup"} for heading in outline.attributes("th"))


def test_every_figure_is_named_described_and_has_its_data(outline):
    names = [name for name, _ in outline.elements]
    pictures = outline.attributes("svg")
    # Each is there for a window and for a telephone; a style sheet shows one of them.
    assert 2 * names.count("figcaption") == 2 * names.count("figure") == len(pictures)
    assert {picture["viewbox"].split()[2] for picture in pictures} <= {"760", "350"}
    identifiers = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    for picture in pictures:
        assert picture["role"] == "img"
        assert set(picture["aria-labelledby"].split()) <= set(identifiers)


def test_links_lead_to_parts_of_the_page(outline):
    identifiers = {attributes.get("id") for _, attributes in outline.elements}
    assert {link["href"][1:] for link in outline.attributes("a")} <= identifiers


def test_hostile_names_stay_text(hostile):
    text = html.render(hostile)
    assert "<script" not in text
    assert "&lt;script&gt;alert(" in text


def test_the_same_result_gives_the_same_page(sound):
    assert html.render(sound) == html.render(sound)


def test_the_page_stays_small(sound):
    assert len(html.render(sound).encode()) < 160_000


def test_light_dark_and_print_are_styled(sound):
    text = html.render(sound)
    assert "prefers-color-scheme:dark" in text
    assert "@media print" in text


def test_a_column_of_sentences_keeps_lines_that_can_be_read_on_a_telephone():
    columns = (Column("what", key=True), Column("why", key=True), Column("where", key=True), Column("n"))
    reason = "it improved 1 of 39 trainings elsewhere; " * 3
    table = Table("t", "t", columns, (("a", reason, "here; there", "1"), ("b", "short", "x" * 60, "2")))
    text = html_parts.render_table(table)
    assert text.count('<td class="key text long">') == 2
    assert text.count('<td class="key text">') == 2
    assert ".long{min-width:" in html_parts.STYLE
