"""Formulas as R writes them, read word by word.

The words of a formula, each with its place, so that an error can point at it.

Formulas as R writes them: `y ~ a * b + x + (1 + x|g) + (1|g:h)`.

Understood are `+`, `-`, `:`, `*`, `/`, brackets, `0`, `1`, `-1`, `factor(x)`, `as.factor(x)` or `C(x)` for a factor
made of numbers, names in backticks, random intercepts `(1|g)`, `(1|g:h)` and `(1|g/h)`, and random slopes `(1 + x|g)`,
`(0 + x|g)` and, without correlations, `(x || g)`. Everything else is refused by name and place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from isorun.errors import InputError

__all__ = [
    "Formula",
    "RandomTerm",
    "Term",
    "Token",
    "Variable",
    "formula_error",
    "parse_formula",
    "term_label",
    "tokenize",
    "with_factor",
]

EXAMPLE: Final = "accuracy ~ experiment + (1|seed)"
_SHOWN: Final = 60
"""Characters shown on either side of the place, where a formula is too long to be shown whole."""
_FOUND_INDENT: Final = " " * len("  found:   ")
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<name>`[^`]+`|[^\W\d][\w.]*|\.[^\W\d][\w.]*)|(?P<number>\d+(?:\.\d+)?)|(?P<sign>\|\||[~+\-*:/()|^]))"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a formula.

    kind: "name", "number", "sign" or "end"; text: the word, backticks removed; place: its position in the formula.
    """

    kind: str
    text: str
    place: int


def formula_error(formula: str, place: int, what: str, *, allowed: str = "", hint: str = "") -> InputError:
    """An error that shows the formula, or what surrounds the place in a long one, with a caret under `place`."""
    start = max(0, place - _SHOWN) if len(formula) > 2 * _SHOWN else 0
    shown = ("…" if start else "") + formula[start : start + 2 * _SHOWN]
    shown += "…" if start + 2 * _SHOWN < len(formula) else ""
    pointed = f"{shown}\n{_FOUND_INDENT}{' ' * (place - start + (start > 0))}^"
    return InputError(f"the formula cannot be used: {what}", found=pointed, allowed=allowed, hint=hint)


def tokenize(formula: str) -> tuple[Token, ...]:
    """The words of `formula`, closed by an "end" token.

    Tabs and line breaks must have been turned into spaces, so that the caret stands where it should.
    """
    tokens: list[Token] = []
    place, end = 0, len(formula.rstrip())
    while place < end:
        match = _TOKEN.match(formula, place)
        if match is None or match.lastgroup is None:
            raise _unknown_character(formula, place)
        tokens.append(Token(match.lastgroup, match.group(match.lastgroup).strip("`"), match.start(match.lastgroup)))
        place = match.end()
    return (*tokens, Token("end", "", end))


def _unknown_character(formula: str, place: int) -> InputError:
    place += len(formula[place:]) - len(formula[place:].lstrip())
    return formula_error(
        formula,
        place,
        f"{formula[place]!r} has no meaning here",
        allowed="column names (`in backticks` when they hold spaces), 0, 1, and the signs ~ + - * : / ( ) | ||",
    )


_FACTOR_CALLS: Final = frozenset({"C", "factor", "as.factor"})
_DEEPEST: Final = 40
"""Brackets within brackets; nobody writes more, and a text that does must not exhaust the stack."""
_MOST_TERMS: Final = 1_000
"""A product of twenty names has a million terms."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A column as the formula uses it; label is how R would name it: `lr`, or `factor(lr)` when forced to a factor."""

    column: str
    label: str
    forced_factor: bool


Term = tuple[Variable, ...]
"""Variables that are multiplied with each other, in the order in which the formula first names them."""

_Terms = dict[frozenset[Variable], None]
"""An ordered set of terms; the empty term is the intercept."""

_INTERCEPT: Final[frozenset[Variable]] = frozenset()


@dataclass(frozen=True, slots=True)
class RandomTerm:
    """What varies between the levels of a group: an intercept, slopes (`terms`), or both, correlated with each other.

    columns: those whose levels, taken together, are the groups. written: the left-hand side as R would print it.
    """

    columns: tuple[str, ...]
    intercept: bool
    terms: tuple[Term, ...]
    written: str

    @property
    def group(self) -> str:
        """`g` or `h:g`."""
        return ":".join(self.columns)

    @property
    def label(self) -> str:
        """`(1 | g)`, as lmerTest writes it."""
        return f"({self.written} | {self.group})"


@dataclass(frozen=True, slots=True)
class Formula:
    """What a formula says.

    terms: fixed terms without the intercept, main effects before interactions, as R orders them.
    random: in the order written; `(1|g/h)` is `h:g` and then `g`, and `(x || g)` is `(1|g)` and `(0 + x|g)`, as in
    lme4.
    """

    text: str
    response: str
    intercept: bool
    terms: tuple[Term, ...]
    random: tuple[RandomTerm, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Every variable of the fixed part, once."""
        return tuple({variable: None for term in self.terms for variable in term})

    @property
    def slope_variables(self) -> tuple[Variable, ...]:
        """Every variable whose effect varies between groups, once."""
        return tuple({variable: None for random in self.random for term in random.terms for variable in term})

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The grouping columns of each random term."""
        return tuple(random.columns for random in self.random)


def term_label(term: Term) -> str:
    """`a:b`, the name R gives a term."""
    return ":".join(variable.label for variable in term)


def parse_formula(text: str) -> Formula:
    """The formula that `text` says, or an InputError with a caret at the place that cannot be read."""
    return _Parser(" ".join(text.split())).formula()


def with_factor(text: str, column: str) -> str:
    """The formula with a column of the fixed part as levels: `y ~ x + (x|g)` as `y ~ factor(x) + (x|g)`."""
    text = " ".join(text.split())
    tokens, out, done = tokenize(text), "", 0
    response = tokens[0].place
    for place, token in enumerate(tokens):
        ends_in_call = tokens[place + 1 : place + 2] and tokens[place + 1].text == "("
        named = token.kind == "name" and token.text == column and not ends_in_call
        if not named or token.place == response or _is_random(tokens, place) or _is_argument(tokens, place):
            continue
        quoted = text[token.place] == "`"
        end = token.place + len(token.text) + 2 * quoted
        out += f"{text[done : token.place]}factor({text[token.place : end]})"
        done = end
    return out + text[done:]


def _is_argument(tokens: tuple[Token, ...], place: int) -> bool:
    """Whether a name stands in a call, as x in `factor(x)`."""
    return place >= 2 and tokens[place - 1].text == "(" and tokens[place - 2].kind == "name"


def _is_random(tokens: tuple[Token, ...], place: int) -> bool:
    """Whether a token stands in a bracket that has a bar."""
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.text == "(":
            opened.append(at)
        elif token.text == ")" and opened:
            start = opened.pop()
            bars = any(inner.text in ("|", "||") for inner in tokens[start:at])
            if bars and start < place < at:
                return True
    return False


class _Parser:
    """Recursive descent over the tokens; one method for each level of binding, loosest first."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._next = 0
        self._depth = 0
        self._variables: dict[str, Variable] = {}
        self._random: list[RandomTerm] = []

    def formula(self) -> Formula:
        response = self._take_name("the response column")
        if not self._skip("~"):
            raise self._error("expected '~' after the response", allowed=f"a formula such as {EXAMPLE}")
        terms = self._sum({_INTERCEPT: None})
        if self._token.kind != "end":
            raise self._error(f"unexpected {self._token.text!r}")
        self._check(response, terms)
        return Formula(self._text, response.text, _INTERCEPT in terms, self._ordered(terms), tuple(self._random))

    def _check(self, response: Token, terms: _Terms) -> None:
        if not self._random:
            raise self._error("there is no random effect in it", hint="add one, such as + (1|seed)")
        used = [variable for term in terms for variable in term]
        used += [variable for random in self._random for term in random.terms for variable in term]
        if any(variable.column == response.text for variable in used):
            raise self._error_at(response, f"the response {response.text!r} is also on the right-hand side")
        if not terms:
            raise self._error("there is no fixed effect and no intercept in it", hint="write 1 + …")

    def _ordered(self, terms: _Terms) -> tuple[Term, ...]:
        order = {variable: place for place, variable in enumerate(self._variables.values())}
        sorted_terms = sorted((term for term in terms if term), key=len)
        return tuple(tuple(sorted(term, key=order.__getitem__)) for term in sorted_terms)

    def _sum(self, terms: _Terms) -> _Terms:
        minus = self._skip("-") or (self._skip("+") and False)
        while True:
            terms = self._add_item(terms, minus=minus)
            if self._skip("+"):
                minus = False
            elif self._skip("-"):
                minus = True
            else:
                return terms

    def _add_item(self, terms: _Terms, *, minus: bool) -> _Terms:
        """One summand: a number switches the intercept, a bracket with a bar is a random effect, else terms."""
        start = self._token
        if start.kind == "number" and self._tokens[self._next + 1].text not in ("*", ":", "/", "^"):
            return self._switch_intercept(terms, minus=minus)
        items = self._product()
        if items is None:
            if minus:
                raise self._error_at(start, "a random effect cannot be taken away")
            return terms
        return {term: None for term in terms if term not in items} if minus else {**terms, **items}

    def _switch_intercept(self, terms: _Terms, *, minus: bool) -> _Terms:
        token = self._take()
        if token.text not in ("0", "1"):
            raise self._error_at(token, f"the number {token.text} has no meaning", allowed="0 or 1, for the intercept")
        if (token.text == "1") != minus:
            return {_INTERCEPT: None, **terms}
        return {term: None for term in terms if term != _INTERCEPT}

    def _product(self) -> _Terms | None:
        left = self._interaction()
        while left is not None and self._token.text in ("*", "/"):
            sign = self._take().text
            right = self._operand(self._interaction())
            if sign == "*":
                left = {**left, **right, **self._crossed(left, right)}
            else:
                left = {**left, **self._crossed({frozenset().union(*left): None}, right)}
        return left

    def _interaction(self) -> _Terms | None:
        left = self._atom()
        while left is not None and self._skip(":"):
            left = self._crossed(left, self._operand(self._atom()))
        if self._token.text == "^":
            raise self._error("powers are not understood", hint="write the interactions out, as a*b or a:b")
        return left

    def _operand(self, terms: _Terms | None) -> _Terms:
        if terms is None:
            raise self._error("a random effect cannot be multiplied", allowed="random effects joined by +")
        return terms

    def _atom(self) -> _Terms | None:
        token = self._token
        if token.kind == "name":
            return {frozenset({self._variable()}): None}
        if self._skip("("):
            return self._bracket(token)
        if token.kind == "number":
            raise self._error(f"the number {token.text} cannot be part of a term")
        raise self._error("expected a column name" + (f" instead of {token.text!r}" if token.text else " here"))

    def _bracket(self, opening: Token) -> _Terms | None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error_at(opening, "too many brackets within brackets", allowed=f"{_DEEPEST} deep")
        terms = self._random_effect(opening) if self._bar_ahead() else self._sum({})
        if not self._skip(")"):
            raise self._error("expected ')'")
        self._depth -= 1
        return terms or None

    def _bar_ahead(self) -> bool:
        """Whether the bracket just opened holds a bar of its own."""
        depth = 0
        for token in self._tokens[self._next :]:
            if token.text in ("|", "||") and depth == 0:
                return True
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if depth < 0:
                return False
        return False

    def _random_effect(self, opening: Token) -> _Terms:
        """`1 + x | g` or `x || g`, up to the closing bracket; what it adds to the fixed part: nothing."""
        outside, self._variables = self._variables, {}
        start, found = self._next, len(self._random)
        terms = self._sum({_INTERCEPT: None})
        if len(self._random) > found:
            raise self._error_at(opening, "a random effect cannot be within another")
        if not terms:
            raise self._error_at(opening, "this random effect has neither an intercept nor a slope", allowed="(1|g), …")
        written = _printed(self._tokens[start : self._next])
        whole = RandomTerm((), _INTERCEPT in terms, self._ordered(terms), written)
        self._variables = outside
        apart = self._token.text == "||"
        if not (self._skip("||") or self._skip("|")):
            raise self._error("expected '|'")
        parts = _uncorrelated(whole) if apart else [whole]
        self._random += [replace(part, columns=columns) for columns in self._group() for part in parts]
        self._refuse_twice(opening)
        return {}

    def _group(self) -> list[tuple[str, ...]]:
        path = [self._group_columns()]
        while self._skip("/"):
            path.append(self._group_columns() + path[-1])
        return path[::-1]

    def _refuse_twice(self, opening: Token) -> None:
        seen: set[tuple[frozenset[str], Term]] = set()
        for random in self._random:
            for term in (*random.terms, *([()] if random.intercept else [])):
                if (frozenset(random.columns), term) in seen:
                    what = f"the random slope of {term_label(term)} in" if term else "the random effect of"
                    raise self._error_at(opening, f"{what} {random.group} is there twice")
                seen.add((frozenset(random.columns), term))

    def _group_columns(self) -> tuple[str, ...]:
        columns = [self._take_name("a grouping column").text]
        while self._skip(":"):
            columns.append(self._take_name("a grouping column").text)
        return tuple(columns)

    def _variable(self) -> Variable:
        token = self._take()
        label, forced = token.text, False
        if self._token.text == "(":
            if token.text not in _FACTOR_CALLS:
                raise self._error_at(
                    token,
                    f"the function {token.text!r} is not understood",
                    allowed="factor(x), as.factor(x) or C(x)",
                    hint="compute the column before, and name it here",
                )
            self._take()
            column = self._take_name("a column").text
            label, forced = f"{token.text}({column})", True
            if not self._skip(")"):
                raise self._error("expected ')'")
            return self._variables.setdefault(label, Variable(column, label, forced))
        return self._variables.setdefault(label, Variable(token.text, label, forced))

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._token
        self._next += token.kind != "end"
        return token

    def _take_name(self, what: str) -> Token:
        if self._token.kind != "name":
            raise self._error(f"expected {what}", allowed=f"a formula such as {EXAMPLE}")
        return self._take()

    def _skip(self, sign: str) -> bool:
        found = self._token.kind == "sign" and self._token.text == sign
        self._next += found
        return found

    def _error(self, what: str, *, allowed: str = "", hint: str = "") -> InputError:
        return self._error_at(self._token, what, allowed=allowed, hint=hint)

    def _error_at(self, token: Token, what: str, *, allowed: str = "", hint: str = "") -> InputError:
        return formula_error(self._text, token.place, what, allowed=allowed, hint=hint)

    def _crossed(self, left: _Terms, right: _Terms) -> _Terms:
        if len(left) * len(right) > _MOST_TERMS:
            raise self._error("the product has too many terms", allowed=f"{_MOST_TERMS:,}")
        return {a | b: None for a in left for b in right}


def _uncorrelated(whole: RandomTerm) -> list[RandomTerm]:
    """`x + z || g` as `1 | g`, `0 + x | g` and `0 + z | g`."""
    slopes = [RandomTerm((), False, (term,), f"0 + {term_label(term)}") for term in whole.terms]
    return [*([RandomTerm((), True, (), "1")] if whole.intercept else []), *slopes]


def _printed(tokens: tuple[Token, ...]) -> str:
    """Words with the spaces that R prints between them."""
    spaced = {sign: f" {sign} " for sign in "+-*"}
    return "".join(spaced.get(token.text, token.text) for token in tokens).strip()
