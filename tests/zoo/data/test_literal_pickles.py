"""Plain data comes out as pickle itself would give it; nothing a file names is ever imported or called."""

from __future__ import annotations

import os
import pickle
import pickletools
import random
import struct
import sys

import pytest

from isorun.errors import DataError
from isorun.zoo.data import literal_pickles
from isorun.zoo.data.literal_pickles import literals_from, read_literals

HARMLESS = {
    *("MARK", "STOP", "NONE", "NEWTRUE", "NEWFALSE", "PROTO", "FRAME", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"),
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    *("EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_DICT", "DICT", "SETITEM", "SETITEMS"),
    *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "GET", "BINGET", "LONG_BINGET"),
}


def made_value(source: random.Random, protocol: int, depth: int = 0):
    scalars = [
        lambda: None,
        lambda: source.random() < 0.5,
        lambda: source.randrange(-(10**3), 10**3),
        lambda: source.randrange(-(2**80), 2**80),
        lambda: source.uniform(-1e6, 1e6),
        lambda: "".join(source.choices("abcé\n\\'\U0001f600", k=source.randrange(6))),
    ]
    if protocol >= 3:
        scalars.append(lambda: source.randbytes(source.randrange(5)))
    if depth >= 4 or source.random() < 0.4:
        return source.choice(scalars)()
    children = [made_value(source, protocol, depth + 1) for _ in range(source.randrange(5))]
    keys = [source.choice([f"key{number}", number]) for number in range(len(children))]
    return source.choice([list, tuple, lambda items: dict(zip(keys, items, strict=True))])(children)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_reads_as_pickle_itself_reads_it(protocol):
    source = random.Random(protocol)
    for _ in range(200):
        content = pickle.dumps(made_value(source, protocol), protocol)
        ours, theirs = literals_from(content), pickle.loads(content)
        assert ours == theirs
        assert repr(ours) == repr(theirs)


def test_texts_that_are_there_twice_are_kept_once():
    key = "val_accuracy"
    content = pickle.dumps([{key: 1}, {key: 2}])
    assert any(operation.name == "BINGET" for operation, _, _ in pickletools.genops(content))
    assert literals_from(content) == [{key: 1}, {key: 2}]


class Touches:
    """Unpickling this makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("wrap", [lambda bad: bad, lambda bad: [1, bad], lambda bad: {"score": bad}])
def test_a_pickle_that_calls_something_is_refused_and_nothing_runs(tmp_path, protocol, wrap):
    marker = tmp_path / "it-ran"
    content = pickle.dumps(wrap(Touches(marker)), protocol)
    with pytest.raises(DataError, match="holds more than plain data"):
        literals_from(content)
    assert not marker.exists()
    pickle.loads(content)
    assert marker.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cpoison_module\nrun\n.",
        b"\x80\x04\x8c\x0dpoison_module\x8c\x03run\x93.",
        b"(ipoison_module\nrun\n.",
        b"(cpoison_module\nrun\no.",
        b"Ppoison_module\n.",
        b"\x80\x02K\x01Q.",
        b"\x80\x02\x82\x01.",
        b"\x80\x02\x83\x01\x00.",
        b"\x80\x02\x84\x01\x00\x00\x00.",
        b"\x80\x02}}b.",
        b"\x80\x02})\x81.",
        b"\x80\x04})}\x92.",
        b"\x80\x02})R.",
        b"\x80\x04\x8f.",
        b"\x80\x04(\x91.",
        b"\x80\x05\x97.",
        b"\x80\x05\x97\x98.",
        b"\x80\x05\x96\x01\x00\x00\x00\x00\x00\x00\x00a.",
        b"S'text of Python 2'\n.",
        b"K\x010.",
        b"K\x012.",
        b"(1.",
    ],
)
def test_every_operation_beyond_plain_data_is_refused_by_name(tmp_path, monkeypatch, content):
    marker = tmp_path / "it-ran"
    (tmp_path / "poison_module.py").write_text(f"open({str(marker)!r}, 'w').close()\nrun = print\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(DataError, match=r"the operation [A-Z0-9_]+"):
        literals_from(content)
    assert "poison_module" not in sys.modules
    assert not marker.exists()


def test_only_the_listed_operations_of_all_that_pickle_has_are_carried_out():
    known = literal_pickles._VALUES | literal_pickles._CONSTANTS.keys() | literal_pickles._STEPS.keys()
    assert known | literal_pickles._NOTHING | {"STOP"} == HARMLESS
    others = {operation.name for operation in pickletools.opcodes} - HARMLESS
    assert {"GLOBAL", "STACK_GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "REDUCE", "BUILD", "PERSID"} <= others
    for name in others:
        with pytest.raises(DataError, match=name):
            literal_pickles._Reader("a pickle").carry_out(name, None, 0)


def test_a_container_may_be_there_only_once_so_that_nothing_grows_beyond_the_file():
    itself: list = []
    itself.append(itself)
    shared: list = []
    for _ in range(40):
        shared = [shared, shared]
    for value in (itself, shared):
        with pytest.raises(DataError, match="more than once"):
            literals_from(pickle.dumps(value))


def test_deep_nesting_is_refused_before_it_can_exhaust_the_stack():
    lists = b"\x80\x04" + b"]" * 5000 + b"a" * 4999 + b"."
    tuples = b"\x80\x04)" + b"\x85" * 5000 + b"."
    marks = b"\x80\x04" + b"(" * 5000 + b"t" * 5000 + b"."
    for content in (lists, tuples, marks):
        with pytest.raises(DataError, match=r"nested|open containers"):
            literals_from(content)


def test_a_length_that_lies_takes_no_memory():
    for content in (
        b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"a.",
        b"\x80\x02X" + struct.pack("<I", 2**32 - 1) + b".",
    ):
        with pytest.raises(DataError, match="damaged"):
            literals_from(content)


def test_bounds_on_size_and_on_operations_hold(monkeypatch, tmp_path):
    content = pickle.dumps(list(range(300)))
    monkeypatch.setattr(literal_pickles, "MOST_OPERATIONS", 200)
    with pytest.raises(DataError, match="too large"):
        literals_from(content)
    monkeypatch.setattr(literal_pickles, "MOST_BYTES", 100)
    file = tmp_path / "log.pkl"
    file.write_bytes(content)
    with pytest.raises(DataError, match="too large"):
        read_literals(file)


@pytest.mark.parametrize("key", [1.5, None, (1, 2), 2**61 - 1])
def test_keys_other_than_texts_and_small_integers_are_refused(key):
    with pytest.raises(DataError, match="neither a text nor a small integer"):
        literals_from(pickle.dumps({key: 1}))


@pytest.mark.parametrize(
    "content",
    [
        *(
            b"",
            b"\x80\x04",
            b".",
            b"K\x01",
            b"K\x01K\x02.",
            b"K\x01.extra",
            b"a.",
            b"]a.",
            b"t.",
            b"(K\x01.",
            b"h\x00.",
        ),
        *(b"}(K\x01u.", b"K\x01K\x02a.", b"q\x00.", b"\xffnonsense", b"I12x\n.", b"X\x02\x00\x00\x00\xff\xfe."),
    ],
)
def test_damaged_pickles_are_named_as_such(content):
    with pytest.raises(DataError, match="damaged"):
        literals_from(content)


def test_random_damage_never_ends_in_another_error():
    source = random.Random(7)
    whole = pickle.dumps(
        {"cur_trial": 3, 0: {"time": 1.5, "history": {"loss": [1.0, 2.0]}, "score": 0.5}, "t": (1, None)}
    )
    refused = 0
    for _ in range(3000):
        content = bytearray(whole)
        for _ in range(source.randrange(1, 4)):
            content[source.randrange(len(content))] = source.randrange(256)
        try:
            literals_from(bytes(content[: source.randrange(1, len(content) + 1)]))
        except DataError:
            refused += 1
    assert 0 < refused <= 3000


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"absent\.pkl"):
        read_literals(tmp_path / "absent.pkl")
