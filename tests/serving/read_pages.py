"""Pages as a browser would take them apart: their elements, links, forms and ids."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "hr", "img"}
OWN = {
    *("html", "head", "meta", "title", "link", "script", "body", "a", "header", "form", "label", "input", "button"),
    *("main", "nav", "ol", "ul", "li", "p", "h1", "h2", "h3", "div", "span", "strong", "select", "option", "section"),
    *("dl", "dt", "dd", "code", "pre", "figure", "figcaption", "details", "summary", "footer"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td"),
    *("svg", "title", "desc", "g", "path", "line", "rect", "circle", "text"),
}


@dataclass
class Element:
    name: str
    attributes: dict


@dataclass
class ReadPage(HTMLParser):
    """What is in a page; an element that is not closed, or closed twice, is an error."""

    text: str
    elements: list = field(default_factory=list)
    open: list = field(default_factory=list)
    words: list = field(default_factory=list)

    def __post_init__(self):
        super().__init__(convert_charrefs=True)
        self.feed(self.text)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice in {tag}: {names}"
        self.elements.append(Element(tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes {self.open[-1]}"
        self.open.pop()

    def handle_data(self, data):
        self.words.append(data)

    def named(self, *names):
        return [element for element in self.elements if element.name in names]

    @property
    def shown(self):
        return " ".join(" ".join(self.words).split())  # which takes no-break spaces for blanks, too

    @property
    def links(self):
        return [element.attributes["href"] for element in self.named("a") if "href" in element.attributes]


def sound(text):
    """The page, which has nothing in it that is not ours, and what a reader needs to find his way."""
    page = ReadPage(text)
    foreign = {element.name for element in page.elements} - OWN
    assert foreign == set(), f"elements that are not ours: {foreign}"
    for element in page.elements:
        for name, value in element.attributes.items():
            assert not name.startswith("on"), f"{element.name} {name}"
            assert name != "style", f"{element.name} has a style of its own"
            if name in {"href", "src", "action"}:
                assert value == "" or value.startswith(("/", "#")), f"{name} leads elsewhere: {value!r}"
                assert not value.startswith("//"), value
    for script in page.named("script"):
        assert set(script.attributes) == {"src", "defer"}
        assert script.attributes["src"].startswith("/static/")
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids)), f"ids twice: {[one for one in ids if ids.count(one) > 1]}"
    assert len(page.named("h1")) == 1
    labelled = {element.attributes.get("for") for element in page.named("label")}
    for control in page.named("input", "select"):
        assert control.attributes.get("type") == "hidden" or control.attributes["id"] in labelled
    for link in page.links:
        assert not link.startswith("#") or link[1:] in ids, f"{link} leads nowhere"
    return page
