"""Secrets that a training prints are not kept."""

import time

from hypothesis import given
from hypothesis import strategies as st

from isorun.execution.masking import Mask

SECRET = "s3cr3t-value"


def masked(pieces, secrets=(SECRET,)):
    mask = Mask(secrets)
    return b"".join([*map(mask.feed, pieces), mask.rest()])


@given(st.lists(st.sampled_from(["s3cr3t", "-", "value", "s", "\n", "x", SECRET]), max_size=30), st.data())
def test_wherever_the_stream_is_cut_the_same_bytes_are_kept_and_no_secret_is(words, data):
    text = "".join(words).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert masked(pieces) == text.replace(SECRET.encode(), b"<redacted>")


def test_only_what_may_be_the_start_of_a_secret_is_held_back():
    mask = Mask([SECRET])
    assert mask.feed(b"loss 0.1\n") == b"loss 0.1\n"
    assert mask.feed(b"token s3cr") == b"token "
    assert mask.feed(b"eam") == b"s3cream"


def test_short_values_are_taken_for_ordinary_words():
    assert masked([b"epoch 1"], ["epoch"]) == b"epoch 1"


def test_megabytes_pass_quickly():
    began = time.perf_counter()
    masked([b"s3cr3t-valu " * 20_000] * 10, [f"{SECRET}-{number}" for number in range(20)])
    assert time.perf_counter() - began < 5
