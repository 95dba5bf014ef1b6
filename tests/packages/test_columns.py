"""Columns of numbers come out as they went in, small where they can be, and in the same bytes everywhere."""

import hashlib
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from isorun.errors import PackageError
from isorun.packages.columns import CHUNK, Cursor, packed, unpacked
from isorun.packages.container import Entry


def read(data, count, dtype):
    name = "numbers"
    file = io.BytesIO(bytes(30 + len(name)) + data)
    cursor = Cursor(file, Entry(name, len(data), 0, 0))
    chunks = list(unpacked(cursor, count, dtype))
    cursor.end()
    return np.concatenate(chunks) if chunks else np.empty(0, dtype)


def test_sizes_of_chunks_are_no_matter():
    for size in (0, 1, CHUNK - 1, CHUNK, CHUNK + 1):
        numbers = np.arange(size, dtype="<u8") * 3
        assert (read(b"".join(packed(numbers)), size, "<u8") == numbers).all()


@given(
    arrays.arrays("<u8", st.integers(0, 300), elements=st.integers(0, 2**64 - 1) | st.sampled_from([0, 7, 2**63]))
    | arrays.arrays("<u2", st.integers(0, 300))
)
def test_what_went_in_comes_out(numbers):
    dtype = f"<u{numbers.dtype.itemsize}"
    assert (read(b"".join(packed(numbers)), len(numbers), dtype) == numbers).all()


def bytes_a_number(values):
    return sum(map(len, packed(np.asarray(values, "<f8").view("<u8")))) / len(values)


def test_numbers_cost_what_there_is_in_them():
    generator = np.random.default_rng(1)
    assert bytes_a_number(generator.random(50_000)) < 7.0  # 53 random bits
    assert bytes_a_number(generator.normal(size=50_000).astype("<f4")) < 4.6  # a training in float32
    assert bytes_a_number(generator.integers(9000, 9400, 50_000) / 10_000) < 1.3  # accuracies: k of n
    assert bytes_a_number(np.full(50_000, 0.1)) < 1.1  # never under a 256th


def test_the_same_numbers_give_the_same_bytes_on_every_machine():
    """A library that compresses otherwise would give the same study another address: better to know."""
    numbers = (np.arange(20_000) % 251 * 0.37).round(2)
    found = hashlib.sha256(b"".join(packed(numbers.astype("<f8").view("<u8")))).hexdigest()
    assert found == "dcd50f279604d8777afd852a5a76c1415ce388dcc58ba4c002e5efb20b4f26b8"


def test_a_column_that_says_too_much_or_too_little_is_refused():
    data = b"".join(packed(np.arange(100, dtype="<u8")))
    for damaged in (data[:-1], data + b"\0", b"\5" + data[1:]):
        with pytest.raises(PackageError):
            read(damaged, 100, "<u8")
