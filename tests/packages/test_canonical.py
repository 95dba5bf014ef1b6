"""JSON with one form: known answers of RFC 8785, and nothing read that would be canonical_bytes otherwise."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.errors import PackageError
from isorun.packages.canonical import canonical_bytes, jcs, read_canonical, read_jcs, read_lines

# RFC 8785, appendix B: IEEE 754 numbers and what is canonical_bytes for them.
NUMBERS = {
    "0000000000000000": "0", "8000000000000000": "0", "0000000000000001": "5e-324", "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308", "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992", "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000", "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23", "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000", "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001", "41b3de4355555553": "333333333.3333332", "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333", "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343", "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}  # fmt: skip
TEXTS = st.text('aé€\U0001f600\ufb33\r\x00\x1f"\\/ ', max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_numbers_are_written_as_the_rfc_says(bits, text):
    assert jcs(struct.unpack(">d", bytes.fromhex(bits))[0]).decode() == text


def test_the_example_of_the_rfc():
    """RFC 8785, section 3.2.2 and 3.2.4."""
    value = json.loads(
        r'{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],'
        r'"string": "\u20ac$\u000F\u000aA\u0027\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}'
    )
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert jcs(value) == expected.encode()


def test_names_are_sorted_by_their_utf_16_units():
    """RFC 8785, section 3.2.3."""
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    expected = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(jcs(dict.fromkeys(names, 0)))) == expected


@given(VALUES)
def test_what_is_written_reads_back_and_is_written_the_same(value):
    assert jcs(read_jcs(jcs(value), "x")) == jcs(value)
    assert canonical_bytes(read_canonical(canonical_bytes(value), "x")) == canonical_bytes(value)


@pytest.mark.parametrize("value", [2**53 + 1, -(2**60) - 1, 10**400, float("nan"), float("inf")])
def test_there_is_no_form_for_numbers_that_not_everybody_reads_alike(value):
    with pytest.raises(ValueError, match="number"):
        jcs(value)


@pytest.mark.parametrize("text", ['{"a":1,"a":1}', '{"b":1,"a":1}', "[1, 2]", "1.0", "1e2", '"\\u0061"', "[1]\n"])
def test_another_form_is_refused(text):
    with pytest.raises(PackageError):
        read_jcs(text.encode(), "x")


def test_what_is_deep_wide_or_long_is_refused_before_it_is_read():
    assert read_canonical(b"[" * 60 + b"]" * 60, "x")
    for text in (b"[" * 61 + b"]" * 61, b"[" + b"0," * 300_001 + b"0]", b'"' + b"x" * 8 * 2**20 + b'"'):
        with pytest.raises(PackageError, match=r"too (deep|many|long)"):
            read_canonical(text, "x")
    assert len(read_canonical(b'"' + b"[,{" * 400_000 + b'"', "x")) == 1_200_000  # brackets in a text are none


def test_lines_say_what_each_of_them_says():
    lines = [
        b"1",
        b'{"a":[1.5,NaN]}',
        b'"' + b"x" * 150_000 + b'"',
        b"[" * 60 + b"]" * 60,
        *[b'{"b":"\\u00e4"}'] * 20_000,
    ]
    assert repr(list(read_lines(lines, "x"))) == repr([read_canonical(line, "x") for line in lines])
    assert list(read_lines([], "x")) == []


@pytest.mark.parametrize(
    "lines",
    [
        [b"[1", b"2]", b"3,4"],
        [b'{"a":[{"b":1}', b'{"c":1}]}', b"{},{}"],
        [b'{"a":1', b'"b":2},{}'],
        [b'"', b'"', b"1,1"],
        [b"1,1"],
        [b"", b"1"],
        [b"1", b" 1"],
        [b"1", b"1.50"],
        [b'{"b":1,"a":1}'],
        [b'"\xc3\xa4"'],
        [b"1", b"[" * 59] * 2_000,
    ],
)
def test_lines_that_are_whole_only_together_or_in_another_form_are_refused(lines):
    with pytest.raises(PackageError):
        list(read_lines(lines, "x"))
