"""Formulas are read as R reads them, and errors point at the place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.analysis.mixed.formula import parse_formula, term_label
from isorun.errors import InputError


def terms(text):
    formula = parse_formula(text)
    return formula.intercept, [term_label(term) for term in formula.terms]


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        ("a", (True, ["a"])),
        ("1", (True, [])),
        ("a + b + a:b", (True, ["a", "b", "a:b"])),
        ("a*b", (True, ["a", "b", "a:b"])),
        ("a:b + a", (True, ["a", "a:b"])),
        ("b:a + a + b", (True, ["a", "b", "b:a"])),
        ("a*b*c", (True, ["a", "b", "c", "a:b", "a:c", "b:c", "a:b:c"])),
        ("a/b", (True, ["a", "a:b"])),
        ("(a + b)*c", (True, ["a", "b", "c", "a:c", "b:c"])),
        ("a*b - a:b", (True, ["a", "b"])),
        ("a + a", (True, ["a"])),
        ("0 + a", (False, ["a"])),
        ("a - 1", (False, ["a"])),
        ("-1 + a", (False, ["a"])),
        ("0 + a + 1", (True, ["a"])),
        ("C(x) + factor(y2)", (True, ["C(x)", "factor(y2)"])),
        ("`learning rate` + a.b", (True, ["learning rate", "a.b"])),
    ],
)
def test_the_fixed_part_expands_as_in_r(right, expected):
    assert terms(f"y ~ {right} + (1|g)") == expected


@pytest.mark.parametrize(
    ("random", "groups"),
    [
        ("(1|g)", (("g",),)),
        ("(1 | g) + (1|h)", (("g",), ("h",))),
        ("(1|g:h)", (("g", "h"),)),
        ("(1|g/h)", (("h", "g"), ("g",))),
        ("(1|g/h/i)", (("i", "h", "g"), ("h", "g"), ("g",))),
    ],
)
def test_random_intercepts_expand_as_in_lme4(random, groups):
    assert parse_formula(f"y ~ a + {random}").groups == groups


@pytest.mark.parametrize(
    ("formula", "place", "says"),
    [
        ("y a + (1|g)", 2, "expected '~'"),
        ("~ a + (1|g)", 0, "the response column"),
        ("y ~ a + ", 7, "expected a column name"),
        ("y ~ a + (1|g", 12, "expected ')'"),
        ("y ~ a $ b + (1|g)", 6, "'$' has no meaning"),
        ("y ~ a + (x|g)", 8, "only random intercepts"),
        ("y ~ a + (0|g)", 8, "only random intercepts"),
        ("y ~ log(a) + (1|g)", 4, "'log' is not understood"),
        ("y ~ a", 5, "no random effect"),
        ("y ~ (a + b)^2 + (1|g)", 11, "powers"),
        ("y ~ a + 2 + (1|g)", 8, "the number 2"),
        ("y ~ a:2 + (1|g)", 6, "the number 2"),
        ("y ~ y + (1|g)", 0, "also on the right"),
        ("y ~ a + (1|g) + (1|g)", 16, "twice"),
        ("y ~ a - (1|g)", 8, "taken away"),
        ("y ~ a * (1|g)", 13, "cannot be multiplied"),
        ("y ~ a b + (1|g)", 6, "unexpected 'b'"),
        ("y ~ a + (1|1)", 11, "a grouping column"),
        ("y ~ 0 + (1|g)", 13, "no fixed effect"),
        ("", 0, "the response column"),
    ],
)
def test_an_error_points_at_its_place(formula, place, says):
    with pytest.raises(InputError, match=r"(?s).") as caught:
        parse_formula(formula)
    assert says in str(caught.value)
    shown, caret = str(caught.value).splitlines()[1:3]
    assert caret.index("^") - shown.index(": ") - len(":   ") == place


@given(st.text(alphabet="yabg1 ~+-*:/()|`.C^", max_size=25))
def test_any_text_is_a_formula_or_a_clear_error(text):
    try:
        formula = parse_formula(text)
    except InputError:
        return
    assert formula.groups
