"""Secrets that a training prints are not kept, and take no metric away."""

import json
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.execution.output import BoundedLog, LineSplitter, Output, Secrets
from isorun.sources.lines import LineMetrics
from isorun.study import Sources

SECRET = "s3cr3t-value"
PEM = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIB"] * 5)
PEM += "\n-----END PRIVATE KEY-----"


def kept(path, pieces, secrets=(SECRET,), **limits):
    log = BoundedLog(path, secrets=Secrets(secrets), **limits)
    for piece in pieces:
        log.write(piece)
    log.close()
    return path.read_bytes()


def pieces_of(text, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(st.lists(st.sampled_from(["s3cr3t", "-", "value", "s", "\n", "\r", "x", SECRET]), max_size=30), st.data())
def test_wherever_the_stream_is_cut_the_same_bytes_are_kept_and_no_secret_is(tmp_path_factory, words, data):
    text = "".join(words).encode()
    path = tmp_path_factory.mktemp("log") / "output.log"
    assert kept(path, pieces_of(text, data)) == text.replace(SECRET.encode(), b"<redacted>")


@given(st.integers(0, 60), st.integers(0, 60), st.data())
def test_a_secret_at_a_place_where_the_log_is_cut_is_not_kept_in_halves(tmp_path_factory, before, after, data):
    line = b"a" * before + SECRET.encode() + b"b" * after + b"\n"
    text = line * 6
    path = tmp_path_factory.mktemp("log") / "output.log"
    left = kept(path, pieces_of(text, data), head_bytes=50, tail_bytes=45)
    assert b"s3cr" not in left
    assert b"valu" not in left


@given(st.data())
def test_a_private_key_over_several_lines_is_masked_as_a_whole(tmp_path_factory, data):
    text = f"before\n{PEM}\nafter\n".encode()
    path = tmp_path_factory.mktemp("log") / "output.log"
    assert kept(path, pieces_of(text, data), secrets=()) == b"before\n<redacted>\nafter\n"


def test_the_end_of_a_log_is_masked_before_and_after_it_is_closed(tmp_path):
    log = BoundedLog(tmp_path / "output.log", secrets=Secrets([SECRET]))
    log.write(f"x\ntoken {SECRET}".encode())
    assert log.end() == b"x\ntoken <redacted>"
    log.close()
    assert log.end() == b"x\ntoken <redacted>"


def test_the_end_of_a_log_that_was_cut_is_the_end_of_the_output(tmp_path):
    log = BoundedLog(tmp_path / "output.log", head_bytes=100, tail_bytes=1000, secrets=Secrets([SECRET]))
    for number in range(1000):
        log.write(f"{number} {SECRET}\n".encode())
    before = log.end()
    log.close()
    assert log.end().endswith(b"999 <redacted>\n")
    assert before.endswith(b"999 <redacted>\n")
    assert SECRET.encode() not in before + log.end()


def test_bytes_that_are_no_text_are_kept_as_they_are(tmp_path):
    data = bytes(range(256)) * 3
    assert kept(tmp_path / "output.log", [data]) == data


def test_short_values_are_taken_for_ordinary_words():
    assert Secrets(["epoch", "accuracy"]).masked("epoch 1 accuracy 2") == "epoch 1 accuracy 2"


def test_a_value_is_masked_as_an_address_would_write_it():
    assert Secrets(["p@ss/w0rd!"]).masked("https://h/?x=p%40ss%2Fw0rd%21 and p@ss/w0rd!") == (
        "https://h/?x=<redacted> and <redacted>"
    )


def test_what_arguments_withhold_and_addresses_hold_is_masked():
    secrets = Secrets.of(["t.py", "--db-pass", "hunter2-x", "-u", "me:t0psecret"], {"STORE": "redis://a:b1c2d3e4@h/0"})
    assert secrets.masked("hunter2-x t0psecret b1c2d3e4 done") == "<redacted> <redacted> <redacted> done"


@pytest.mark.parametrize("variable", ["SORT_KEY", "MY_TOKEN", "APP_PASSWORD"])
def test_a_metric_with_the_name_of_a_secret_is_read(tmp_path, variable):
    metrics = LineMetrics(Sources())
    secrets = Secrets.of(["train.py"], {variable: "accuracy"})
    log = BoundedLog(tmp_path / "output.log", secrets=secrets)
    output = Output(log, LineSplitter(metrics.feed))
    output.write(b"accuracy: 0.75\n", 1.0)
    output.close(2.0)
    log.close()
    assert metrics.finish().results == {"accuracy": 0.75}
    assert (tmp_path / "output.log").read_bytes() == b"accuracy: 0.75\n"


@pytest.mark.long
def test_megabytes_are_kept_quickly(tmp_path):
    began = time.process_time()
    secrets = [f"{SECRET}-{number}" for number in range(20)]
    kept(tmp_path / "output.log", [b"epoch 3 loss 0.25 s3cr3t-valu token=1 key\n" * 20_000] * 20, secrets)
    assert time.process_time() - began < 10


def kept_of(tmp_path, pieces, secret):
    log = BoundedLog(tmp_path / "output.log", secrets=Secrets([secret]))
    for piece in pieces:
        log.write(piece)
    log.close()
    return (tmp_path / "output.log").read_bytes()


@pytest.mark.parametrize("before", [65_530, 65_536, 126_970, 131_064, 200_000])
def test_a_secret_on_an_endless_line_is_masked_wherever_reading_cuts_it(tmp_path, before):
    secret = "Kq81z-Pz77w-Lm20x"
    text = b"x" * before + secret.encode() + b"y" * 70_000
    pieces = [text[start : start + 65_536] for start in range(0, len(text), 65_536)]
    kept = kept_of(tmp_path, pieces, secret)
    assert secret.encode() not in kept
    assert b"z-Pz77w-L" not in kept
    assert kept.count(b"x") >= before - 1
    assert kept.count(b"y") >= 70_000


def test_of_an_endless_line_that_was_cut_no_end_of_a_secret_is_kept(tmp_path):
    text = b"x" * 5000 + SECRET.encode() + b"y" * 995
    left = kept(tmp_path / "output.log", [text], head_bytes=10, tail_bytes=1000)
    assert SECRET.encode()[-5:] not in left
    assert left.endswith(b"y" * 100)


def test_a_secret_is_masked_as_programs_print_it(tmp_path):
    secret = 'EnvPl4in/Val+ue"9'
    printed = "\n".join([secret, json.dumps(secret), quote(secret), quote(secret, safe=""), quote_plus(secret)])
    kept = kept_of(tmp_path, [printed.encode()], secret)
    assert b"Pl4in" not in kept


def test_words_in_dashes_are_no_private_key(tmp_path):
    text = b"-----BEGIN TRAINING-----\nRuntimeError: disk quota exceeded\n"
    assert kept_of(tmp_path, [text], "Kq81z-Pz77w") == text


def test_the_key_in_a_connection_string_and_a_secret_in_base64_are_masked_by_themselves():
    value = "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=O6TiA3gaAXJLhFz9KjA2Yr3N==;EndpointSuffix=y"
    hidden = Secrets.of(["t.py"], {"AZURE_STORAGE_CONNECTION_STRING": value, "API_TOKEN": "cfONvXFMzq8D3ab7uKPudANT"})
    text = "key O6TiA3gaAXJLhFz9KjA2Yr3N== and Y2ZPTnZYRk16cThEM2FiN3VLUHVkQU5U on x, core, https"
    assert hidden.masked(text) == "key <redacted> and <redacted> on x, core, https"


def test_colours_hide_no_known_value_and_stay_where_nothing_is_hidden():
    hidden = Secrets.of(["t.py"], {"API_TOKEN": "cfONvXFMzq8D3ab7uKPudANT"})
    assert hidden.masked("\x1b[1mcfONvXFM\x1b[31mzq8D3ab7uKPudANT\x1b[0m") == "<redacted>"
    assert hidden.masked("\x1b[1macc\x1b[0m 0.5") == "\x1b[1macc\x1b[0m 0.5"
    assert hidden.masked("\x1b[2J\x1b[1;1Hacc 0.5") == "\x1b[2J\x1b[1;1Hacc 0.5"
    assert hidden.masked("\x1b[2Jpassword: \x1b[1mq8D3ab7uKPud") == "\x1b[2Jpassword: <redacted>"
