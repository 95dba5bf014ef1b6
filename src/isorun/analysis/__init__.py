"""Statistics as pure functions: arrays or records in, frozen results out.

Results tell themselves: `print(result)` says what the command would print, a notebook shows it as HTML, and `to_json`
has the keys of `--json`. The words are those of report/, which lies above and so is not imported here: `isorun.showing`
hands them down (`tell_with`) when a result can first be met.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

__all__ = ["Told", "tell_with"]

_TELLERS: Final[dict[str, Callable[[Any], Any]]] = {}


class Told:
    """A result with words for people. told_as: the name under which the teller knows its kind."""

    __slots__ = ()
    told_as: ClassVar[str] = ""

    def __str__(self) -> str:
        """The verdict and the short tables, as the command prints them."""
        return str(_TELLERS["text"](self)) if _TELLERS else repr(self)

    def _repr_html_(self) -> str | None:
        """The same for a notebook: escaped, without scripts."""
        return _TELLERS["html"](self) if _TELLERS else None

    def to_json(self) -> Any:
        """Plain JSON, with the keys of `--json`. Kinds whose JSON holds no words of a report make it themselves."""
        return _TELLERS["json"](self)


def tell_with(text: Callable[[Any], str], html: Callable[[Any], str], json: Callable[[Any], Any]) -> None:
    """From now on results are told by these."""
    _TELLERS.update(text=text, html=html, json=json)
