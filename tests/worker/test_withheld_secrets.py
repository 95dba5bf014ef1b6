"""How many secrets are withheld, as the benchmark counts them: the figures of benchmarks/RESULTS.md hold."""

import importlib.util
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.worker.redaction import REDACTED, redacted_argv, without_secrets

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "withheld_secrets.py"


@pytest.fixture(scope="module")
def counted():
    spec = importlib.util.spec_from_file_location("withheld_secrets", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_enough_names_and_shapes_are_tried(counted):
    assert len(counted.VARIABLES) + len(counted.OPTIONS) >= 600
    assert len(counted.shapes()) >= 200
    assert len(counted.ORDINARY_VARIABLES) + len(counted.ORDINARY_OPTIONS) + len(counted.ORDINARY_TEXTS) >= 400


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_secret_is_missed_by_its_name(counted, seed):
    assert counted.missed_names(seed) == []


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_secret_is_missed_by_its_shape(counted, seed):
    assert counted.missed_shapes(seed) == ["PuTTY key", "signature header"], "the ones that are known"


def test_ordinary_values_stay_readable(counted):
    assert counted.falsely_withheld() == []


def commands(counted):
    """Every case of the benchmark in the places of a command where it may stand."""
    texts = [text for text, _ in counted.shapes().values()] + counted.ORDINARY_TEXTS
    for text in texts:
        yield from (["bash", "-c", text], ["t.py", text], ["t.py", f"--x={text}"], ["t.py", "--password", text])
    for name in [*counted.OPTIONS, *counted.VARIABLES]:
        address = f"https://h/x?b=2&{name}=abc4Hk2Lq9Zx1y&a=1"
        yield from (
            ["t.py", name, "abc4Hk2Lq9Zx1y"],
            ["t.py", address],
            ["t.py", f"--u={address}", f"curl '{address}'"],
        )


@pytest.mark.long
def test_what_is_redacted_already_stays_as_it_is(counted):
    for command in commands(counted):
        kept = redacted_argv(command, {})
        assert redacted_argv(kept, {}) == kept, command
        assert without_secrets(without_secrets(" ".join(command))) == without_secrets(" ".join(command))


@pytest.mark.parametrize("name", ["sig", "auth", "code", "jwt", "session"])
def test_what_follows_a_secret_in_an_address_stays_readable(name):
    kept = redacted_argv(["t.py", f"https://h/x?{name}=abcdefgh12345&a=1"], {})
    assert kept == ["t.py", f"https://h/x?{name}={REDACTED}&a=1"]
    assert redacted_argv(kept, {}) == kept


PIECES = st.sampled_from(
    f"""t.py --password -p -u --u=https://h/x?b=2& sig= &a=1 abcN6sbeCII51X KEY: "api_key": --hash-salt= hf_token: 0.5
    {REDACTED} curl me:tgtYdEl0qJnicRzJ ghp_87WxAhGR5pVPQ9yhBMDNHDf9V91yCN5z https://me:pw1234567@h/ Bearer '""".split()
)
WORDS = st.tuples(st.sampled_from(["", " ", "=", ":", "&", "\n"]), st.lists(PIECES | st.text(max_size=4), max_size=4))


@given(st.lists(WORDS.map(lambda made: made[0].join(made[1])), max_size=5))
def test_redacting_twice_is_redacting_once(argv):
    kept = redacted_argv(argv, {})
    assert redacted_argv(kept, {}) == kept
    text = without_secrets("\n".join(argv))
    assert without_secrets(text) == text
