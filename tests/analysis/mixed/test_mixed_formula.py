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
        ("y ~ a + (0|g)", 8, "neither an intercept nor a slope"),
        ("y ~ a + (x - x - 1|g)", 8, "neither an intercept nor a slope"),
        ("y ~ a + ((1|h) + x|g)", 8, "within another"),
        ("y ~ a + (x|g) + (0 + x|g)", 16, "the random slope of x in g is there twice"),
        ("y ~ a + (x|g) + (1|g)", 16, "the random effect of g is there twice"),
        ("y ~ a + (y|g)", 0, "also on the right"),
        ("y ~ a + (|g)", 9, "expected a column name"),
        ("y ~ a + (1|)", 11, "a grouping column"),
        ("y ~ a + (1|||g)", 12, "a grouping column"),
        ("y ~ a + ()", 9, "expected a column name"),
        ("y ~ a + + (1|g)", 8, "expected a column name"),
        ("y ~ poly(a, 2) + (1|g)", 10, "',' has no meaning"),
        ("y ~ factor() + (1|g)", 11, "expected a column"),
        ("y ~ factor(factor(a)) + (1|g)", 17, "expected ')'"),
        ("y ~ log(a) + (log(x)|g)", 4, "'log' is not understood"),
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


@pytest.mark.parametrize(
    ("random", "terms"),
    [
        ("(x|g)", [("(x | g)", True, ["x"])]),
        ("(1 + x|g)", [("(1 + x | g)", True, ["x"])]),
        ("(0+x|g)", [("(0 + x | g)", False, ["x"])]),
        ("(x - 1|g)", [("(x - 1 | g)", False, ["x"])]),
        ("(x || g)", [("(1 | g)", True, []), ("(0 + x | g)", False, ["x"])]),
        ("(0 + x + z||g)", [("(0 + x | g)", False, ["x"]), ("(0 + z | g)", False, ["z"])]),
        ("(b*a|g)", [("(b * a | g)", True, ["b", "a", "b:a"])]),
        ("(factor(x)|g)", [("(factor(x) | g)", True, ["factor(x)"])]),
        ("(x|g/h)", [("(x | h:g)", True, ["x"]), ("(x | g)", True, ["x"])]),
        ("((x|g))", [("(x | g)", True, ["x"])]),
    ],
)
def test_random_slopes_expand_as_in_lme4(random, terms):
    found = parse_formula(f"y ~ a + {random}").random
    assert [(term.label, term.intercept, [term_label(one) for one in term.terms]) for term in found] == terms


@pytest.mark.parametrize("call", ["factor", "as.factor", "C"])
def test_numbers_can_be_made_levels(call):
    (variable,) = parse_formula(f"y ~ {call}(x) + (1|g)").variables
    assert (variable.column, variable.label, variable.forced_factor) == ("x", f"{call}(x)", True)


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("y ~ " + "(" * 1000 + "a" + ")" * 1000 + " + (1|g)", "too many brackets"),
        ("y ~ " + "(" * 1000, "too many brackets"),
        ("y ~ a + " + "(" * 1000 + "1|g" + ")" * 1000, "too many brackets"),
        ("y ~ " + "*".join(f"x{place}" for place in range(25)) + " + (1|g)", "too many terms"),
        ("y ~ " + "+" * 5000 + "a + (1|g)", "expected a column name"),
        ("y ~ " + " + ".join(f"x{place}" for place in range(5000)), "no random effect"),
    ],
)
def test_texts_that_nobody_means_are_refused_shortly_and_at_once(formula, says):
    with pytest.raises(InputError) as caught:
        parse_formula(formula)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 600


@given(st.text(alphabet="yabg1 ~+-*:/()|`.C^", max_size=25))
def test_any_text_is_a_formula_or_a_clear_error(text):
    try:
        formula = parse_formula(text)
    except InputError:
        return
    assert formula.groups
