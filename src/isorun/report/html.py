"""The report as one HTML file: opens offline, runs no script, loads nothing, reads well aloud and on paper.

The content security policy allows nothing but the page's own style sheet, named by its hash; so even text that got
past escaping could do nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from isorun.analysis.evidence import Condition
from isorun.analysis.studies.study_result import StudyResult
from isorun.report import Listing, Section, View, count, escaped, html_parts
from isorun.report.figures import svg
from isorun.report.study_view import headline, listings, study_sections, verdict, warnings
from isorun.study.records import RunState

__all__ = ["fragment", "page", "render", "render_view"]


def render(result: StudyResult, *, beside: Path | None = None) -> str:
    """The whole page. beside: the folder that it will lie in, for links to logs; without it there are none."""
    sections, told = study_sections(result), warnings(result)
    main = [
        _verdict(result),
        _contents(sections, told),
        *(_section(section, beside) for section in sections),
        *_listings(listings(result)),
        *_warnings(told),
    ]
    return page(f"{result.study}: isorun report", _header(result), "\n".join(main))


def render_view(title: str, kicker: str, view: View) -> str:
    """The page of what a command has to say: its verdict, figures, tables, listings and warnings."""
    header = f'<p class="kicker">{escaped(kicker)}</p>\n<h1>{escaped(title)}</h1>'
    main = [
        html_parts.render_sentences(view.verdict[:1], view.verdict[1:]),
        *([_section(Section("results", "Results", view.figures, view.tables))] if view.figures or view.tables else []),
        *_listings(view.listings),
        *_warnings(view.warnings),
    ]
    return page(f"{title}: isorun", header, "\n".join(main))


def _listings(given: Sequence[Listing]) -> Iterator[str]:
    filled = ((number, listing) for number, listing in enumerate(given, start=1) if listing.items)
    yield from (html_parts.render_listing(number, listing) for number, listing in filled)


def fragment(view: View) -> str:
    """The same as a part of somebody else's page, such as a notebook: no script, no ids that could be there twice.

    Our style sheet is not there, so the first sentence of the verdict is strong by itself, and texts in tables, which
    notebooks put to the right, are put to the left. Colours are the notebook's own, light or dark.
    """
    parts = [
        *(f"<p><strong>{html_parts.unbroken(sentence)}</strong></p>" for sentence in view.verdict[:1]),
        *([html_parts.listed_items(view.verdict[1:])] if view.verdict[1:] else []),
        *(f"<div>{svg.render(figure, standalone=True)}</div>" for figure in view.figures),
        *(_to_the_left(html_parts.folded_table(table)) for table in view.tables),
        *(
            f"<p>{escaped(listing.title)}</p>{html_parts.listed_items(listing.items)}"
            for listing in view.listings
            if listing.items
        ),
        *([f"<ol>{''.join(map(html_parts.render_condition, view.warnings))}</ol>"] if view.warnings else []),
    ]
    return f'<div class="isorun">{"".join(parts)}</div>'


def _to_the_left(table: str) -> str:
    left = ' style="text-align:left"'  # quotes in the table's own texts are escaped, so these are ours
    return table.replace(' class="key"', f' class="key"{left}').replace("<caption>", f"<caption{left}>")


def page(title: str, header: str, main: str) -> str:
    """A page around content that is HTML already; only the title is escaped here."""
    digest = base64.b64encode(hashlib.sha256(html_parts.STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escaped(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{escaped(title)}</title>
<style>{html_parts.STYLE}</style>
</head>
<body>
<header>
{header}
</header>
<main>
{main}
</main>
<footer><p>Written by isorun. This file is complete in itself: it loads nothing and runs no script.</p></footer>
</body>
</html>
"""


def _header(result: StudyResult) -> str:
    others = [
        f"{number} {state}" for state, number in result.states.items() if number and state is not RunState.FINISHED
    ]
    facts = [
        f"{count(result.states[RunState.FINISHED], 'run')} finished",
        *others,
        _counted(result),
        *([f"judged by {', '.join(metric.name for metric in result.metrics)}"] if result.metrics else []),
    ]
    return (
        f'<p class="kicker">isorun report</p>\n<h1>{escaped(result.study)}</h1>\n'
        f'<p class="facts">{escaped(" · ".join(facts))}</p>'
    )


def _counted(result: StudyResult) -> str:
    if not result.searches:
        return count(len(result.groups), "group")
    number = len(result.searches)
    return "1 search" if number == 1 else f"{number} searches"


def _verdict(result: StudyResult) -> str:
    first = headline(result)
    return html_parts.render_sentences(first, [sentence for sentence in verdict(result) if sentence not in first])


def _contents(sections: Sequence[Section], warnings: Sequence[Condition]) -> str:
    links = [(section.name, section.title) for section in sections]
    links += [("warnings", count(len(warnings), "warning"))] if warnings else []
    items = "".join(f'<li><a href="#{escaped(name)}">{escaped(title)}</a></li>' for name, title in links)
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>'


def _section(section: Section, beside: Path | None = None) -> str:
    parts = [
        f'<section aria-labelledby="{section.name}">',
        f'<h2 id="{section.name}">{escaped(section.title)}</h2>',
        *(html_parts.render_figure(figure) for figure in section.figures),
        *(html_parts.folded_table(table, beside) for table in section.tables),
        "</section>",
    ]
    return "\n".join(parts)


def _warnings(warnings: Sequence[Condition]) -> Iterator[str]:
    if warnings:
        yield '<section aria-labelledby="warnings"><h2 id="warnings">Warnings</h2>'
        yield f"{html_parts.render_conditions(warnings)}</section>"
