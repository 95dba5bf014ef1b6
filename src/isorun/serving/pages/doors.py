"""All pages as doors. Everyone may knock: what there is to see is for the shelf to say, by who asks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from isorun.errors import InputError, NothingRecorded
from isorun.registry import Viewer
from isorun.serving import EVERYONE, Door
from isorun.serving.gate import viewer_of
from isorun.serving.kept import AnalysedStudy, ShownStudies
from isorun.serving.pages import Page
from isorun.serving.pages.choices import SEVERAL, TABLE, canonical, refuse_unknown
from isorun.serving.pages.following import Followers, told
from isorun.serving.pages.links import study_address
from isorun.serving.pages.rendering import STYLE_NAME, as_csv, as_html, as_json, static_file
from isorun.serving.refusals import Refusal
from isorun.serving.shelves import AbstractShelf

__all__ = ["page_doors"]

_MOST_RANKED: Final = 50
_LONGEST_SEARCH: Final = 200
_NEEDED_NEXT: Final = ("isorun.serving.pages.study", "isorun.analysis.planning.power", "isorun.serving.pages.comparing")
_KINDS: Final = {
    "": "text/html; charset=utf-8",
    ".json": "application/json",
    ".csv": "text/csv; charset=utf-8",
}
_FOR_GOOD: Final = {"cache-control": "public, max-age=31536000, immutable"}
_STUDY: Final = "/shelves/{shelf}/{name:path}"
_OF_A_STUDY: Final = ("study", "runs", "compare", "leaderboard", "environments", "searches")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request: what its address names, its query, and who asks."""

    names: Mapping[str, str]
    query: Mapping[str, str]
    several: tuple[str, ...]
    viewer: Viewer

    @classmethod
    def of(cls, request: Request) -> _Asked:
        query = request.query_params
        said = {word: canonical(word, text) for word, text in query.items() if text}
        return cls(request.path_params, said, tuple(query.getlist(SEVERAL)), viewer_of(request))

    @property
    def key(self) -> Hashable:
        """All that a page depends on beside its studies; its words are known, so that nobody makes up others."""
        return (tuple(sorted(self.names.items())), tuple(sorted(self.query.items())), self.several)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """How a page is made, and what it depends on: the same key, the same page. None: it is never kept."""

    key: Hashable | None
    make: Callable[[], Page]


Prepare = Callable[[_Asked], _Prepared]


def page_doors(shelves: Sequence[AbstractShelf]) -> tuple[list[Door], Callable[[], None]]:
    """The doors of all pages over these shelves, and what closes the shelves."""
    shown = ShownStudies(shelves)
    pages = _Pages(shown)
    prepared: dict[str, Prepare] = {
        "/home": pages.home,
        "/leaderboard": pages.leaderboard,
        **{f"{_STUDY}/{name}": getattr(pages, name) for name in _OF_A_STUDY},
    }
    doors = [
        _door("/", _answer(shown, pages.home, "")),
        _door("/static/{name}", _static),
        _door(f"{_STUDY}/events", pages.events),
    ]
    for ending in sorted(_KINDS, reverse=True):  # a run's id would take in an ending: those with one come first
        doors += [_door(f"{path}{ending}", _answer(shown, one, ending)) for path, one in prepared.items()]
        doors.append(_door(f"{_STUDY}/runs/{{run}}{ending}", _answer(shown, pages.run, ending)))
    doors.append(_door(_STUDY, pages.no_page))  # what none of them takes
    return doors, shown.close


def _door(path: str, answer: Callable[[Request], Response]) -> Door:
    return Door(path, answer, EVERYONE, plain=True)


def _answer(shown: ShownStudies, prepare: Prepare, ending: str) -> Callable[[Request], Response]:
    """What answers a door: the page in one of its forms, made once for all who ask for the same."""

    def answer(request: Request) -> Response:
        refuse_unknown(prepare.__name__, request.query_params, (TABLE,) if ending == ".csv" else ())
        asked = _Asked.of(request)
        prepared = prepare(asked)

        def written() -> bytes:
            page = prepared.make()
            if ending == ".csv":
                return as_csv(page, asked.query.get(TABLE, ""))
            return as_json(page) if ending == ".json" else as_html(page)

        key = None if prepared.key is None else (prepare.__name__, ending, asked.key, prepared.key)
        body = written() if key is None else shown.answers.of(key, written)
        headers = {"content-disposition": 'attachment; filename="isorun.csv"'} if ending == ".csv" else {}
        return Response(body, media_type=_KINDS[ending], headers=headers)

    answer.__name__ = f"{prepare.__name__}{ending.replace('.', '_')}"
    return answer


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    found = static_file(name)
    if found is None:
        raise Refusal(404, "there is nothing here")
    kind, content = found
    return Response(content, media_type=kind, headers={} if name == STYLE_NAME else _FOR_GOOD)


class _Pages:
    """Each page: which studies it needs, and what makes it. Statistics load when the first study is looked at."""

    def __init__(self, shown: ShownStudies) -> None:
        self._shown = shown
        self._followers = Followers()
        self._loading = False

    def home(self, asked: _Asked) -> _Prepared:
        """What there is."""
        from isorun.serving.pages.home import home_page  # noqa: PLC0415 - as said above

        text = asked.query.get("q", "").strip()[:_LONGEST_SEARCH]

        def make() -> Page:
            found, query = self._shown.entries(asked.viewer, text), {**asked.query, "q": text}
            registry = any(shelf.is_registry for shelf in self._shown.shelves)
            unlisted = self._shown.unlisted(asked.viewer, text)
            page = home_page(found, query, asked.viewer.user if registry else None, unlisted)
            self._load_statistics()
            return page

        return _Prepared(None, make)

    def _load_statistics(self) -> None:
        """What the next page will need, loaded while somebody reads the first one."""
        if not self._loading:
            self._loading = True
            threading.Thread(target=lambda: list(map(import_module, _NEEDED_NEXT)), daemon=True).start()

    def study(self, asked: _Asked) -> _Prepared:
        """What a study found; while it runs, how it stands."""
        shelf, name = asked.names["shelf"], asked.names["name"]
        revision = self._shown.revision(shelf, name, asked.viewer)
        standing = self._shown.shelf(shelf).standing(name, asked.viewer)
        at_work = str(standing) if standing is not None and standing.is_at_work else ""

        def make() -> Page:
            from isorun.serving.pages.study import study_page  # noqa: PLC0415

            return study_page(self._found(asked), asked.query, standing)

        return _Prepared((revision, at_work), make)

    def runs(self, asked: _Asked) -> _Prepared:
        """The runs of a study."""

        def make() -> Page:
            from isorun.serving.pages.runs import runs_page  # noqa: PLC0415

            return runs_page(self._found(asked), asked.query)

        return _Prepared(self._revision(asked), make)

    def run(self, asked: _Asked) -> _Prepared:
        """One of them."""

        def make() -> Page:
            from isorun.serving.pages.runs import run_page  # noqa: PLC0415

            return run_page(self._found(asked), asked.names["run"], asked.query)

        return _Prepared(self._revision(asked), make)

    def compare(self, asked: _Asked) -> _Prepared:
        """Two groups, of one study or of two (`with=SHELF/NAME`)."""
        other = asked.query.get("with", "")
        revisions = (self._revision(asked), self._revision_of(other, asked.viewer) if other else "")

        def make() -> Page:
            from isorun.serving.pages.comparing import compare_page  # noqa: PLC0415

            second = self._named(other, asked.viewer) if other else None
            return compare_page(self._found(asked), asked.query, second)

        return _Prepared(revisions, make)

    def leaderboard(self, asked: _Asked) -> _Prepared:
        """The groups of a study, or of several (`of=SHELF/NAME`, once for each)."""
        places = asked.several
        if "shelf" in asked.names and places:
            raise InputError("the groups of one study are ranked here", hint=f"/leaderboard?{SEVERAL}=SHELF/NAME")
        if "shelf" not in asked.names and not 0 < len(places) <= _MOST_RANKED:
            what = "too many studies are ranked at once" if places else "which studies are ranked is not said"
            allowed = f"{SEVERAL}=SHELF/NAME, once for each study, up to {_MOST_RANKED}"
            raise InputError(what, found=f"{len(places)} named", allowed=allowed)
        revisions = tuple(self._revision_of(one, asked.viewer) for one in places) or (self._revision(asked),)

        def make() -> Page:
            from isorun.serving.pages.ranking import leaderboard_page  # noqa: PLC0415

            studies = [self._named(one, asked.viewer) for one in places] or [self._found(asked)]
            return leaderboard_page(studies, asked.query, of=places)

        return _Prepared(revisions, make)

    def environments(self, asked: _Asked) -> _Prepared:
        """What differs between the environments of two runs."""

        def make() -> Page:
            from isorun.serving.pages.surroundings import environments_page  # noqa: PLC0415

            return environments_page(self._found(asked), asked.query)

        return _Prepared(self._revision(asked), make)

    def searches(self, asked: _Asked) -> _Prepared:
        """The searches of a study."""

        def make() -> Page:
            from isorun.serving.pages.searching import searches_page  # noqa: PLC0415

            return searches_page(self._found(asked), asked.query)

        return _Prepared(self._revision(asked), make)

    def no_page(self, request: Request) -> Response:
        """An address of a study that is none of a page: which pages there are, as far as the study is there."""
        asked = _Asked.of(request)
        shelf, name = asked.names["shelf"], asked.names["name"]
        study, _, page = name.rpartition("/")
        try:
            self._shown.revision(shelf, name, asked.viewer)
        except NothingRecorded:
            if not study:
                raise
            self._shown.revision(shelf, study, asked.viewer)
        else:
            study, page = name, ""
        raise Refusal(
            404,
            f"{study} has no such page" if page else f"which page of {study} is not said",
            found=request.scope["path"],
            allowed=f"{', '.join(_OF_A_STUDY)}, each also with .json and .csv",
            hint=study_address(shelf, study),
        )

    def events(self, request: Request) -> StreamingResponse:
        """How a study stands, whenever that changes."""
        asked = _Asked.of(request)
        shelf, name = asked.names["shelf"], asked.names["name"]
        self._shown.revision(shelf, name, asked.viewer)
        if self._followers.is_full:
            raise Refusal(503, "too many follow already", headers=(("retry-after", "60"),))

        def look() -> dict[str, Any]:
            found = self._shown.shelf(shelf)
            return told(found.revision(name, asked.viewer), found.standing(name, asked.viewer))

        return StreamingResponse(self._followers.events(look), media_type="text/event-stream")

    def _found(self, asked: _Asked) -> AnalysedStudy:
        return self._shown.analysed(asked.names["shelf"], asked.names["name"], asked.viewer)

    def _revision(self, asked: _Asked) -> str:
        return self._shown.revision(asked.names["shelf"], asked.names["name"], asked.viewer)

    def _named(self, place: str, viewer: Viewer) -> AnalysedStudy:
        shelf, _, name = place.partition("/")
        return self._shown.analysed(shelf, name, viewer)

    def _revision_of(self, place: str, viewer: Viewer) -> str:
        shelf, _, name = place.partition("/")
        return self._shown.revision(shelf, name, viewer)
