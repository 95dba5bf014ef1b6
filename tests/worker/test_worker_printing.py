"""What a later rank counts of its own lines."""

import io

from isorun.worker import printing
from isorun.worker.printing import PrintedLines, checksum


def followed(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), write_through=True)
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    lines = PrintedLines()
    lines.follow()
    lines.follow()
    return lines, out


def test_lines_with_a_digit_are_counted_however_they_are_put_together(monkeypatch):
    lines, out = followed(monkeypatch)
    print("epoch", 1, "loss", 0.5)
    print("epoch 1 ", end="")
    print("loss 0.5\rbar 2\n", end="")
    print("nothing of note")
    assert lines.counts == {checksum("epoch 1 loss 0.5\n"): 2, checksum("bar 2"): 1}
    assert out.buffer.getvalue().startswith(b"epoch 1 loss 0.5\nepoch 1 loss 0.5\rbar 2\n")


def test_a_line_that_has_not_ended_is_none_and_one_without_end_is_not_kept(monkeypatch):
    lines, _ = followed(monkeypatch)
    print("1" * (printing.LONGEST_LINE + 1), end="")
    print("loss 0.5", end="")
    assert lines.counts == {}
    print()
    assert lines.counts == {checksum("loss 0.5"): 1}


def test_what_is_counted_is_bounded_and_says_so(monkeypatch):
    monkeypatch.setattr(printing, "MOST_LINES", 2)
    lines, _ = followed(monkeypatch)
    for number in (1, 2, 1):
        print("loss", number)
    assert not lines.is_cut
    print("loss 3")
    assert (sorted(lines.counts.values()), lines.is_cut) == ([1, 2], True)


def test_a_stream_that_takes_no_other_write_is_left_as_it_is(monkeypatch):
    class Fixed:
        __slots__ = ()

        def write(self, text):
            return len(text)

    monkeypatch.setattr("sys.stdout", Fixed())
    monkeypatch.setattr("sys.stderr", None)
    PrintedLines().follow()
