"""Keys: made for their owner alone, trusted by name, and never because they came with a package."""

import stat

import pytest
from recorded_study import recorded_study

from isorun.errors import InputError
from isorun.share import keys
from isorun.share.looking import INVALID, TRUSTED, UNKNOWN_KEY, verify
from isorun.share.packing import pack
from isorun.workflow import analyse_runs

pytest.importorskip("cryptography")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("ISORUN_KEY", raising=False)
    return tmp_path / "config" / "isorun"


def test_a_key_is_made_for_its_owner_and_never_replaced(home):
    assert keys.default_key() is None
    path, made = keys.new_key()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert keys.default_key() == path
    assert keys.signer(path)[0] == made
    assert keys.public_key(made.line) == made
    assert keys.public_key(str(path)) == made
    with pytest.raises(InputError, match="there is a key already"):
        keys.new_key()


def test_a_package_is_valid_for_who_trusts_its_key_and_unknown_for_others(tmp_path):
    path, made = keys.new_key()
    study = recorded_study(tmp_path)
    pack(study, tmp_path / "a.isorun", key=path)
    pack(study, tmp_path / "b.isorun", key=path)
    assert (tmp_path / "a.isorun").read_bytes() == (tmp_path / "b.isorun").read_bytes()
    assert verify(tmp_path / "a.isorun").signature == UNKNOWN_KEY
    assert verify(tmp_path / "a.isorun").signature == UNKNOWN_KEY  # it was seen before, which is no trust
    keys.trust(made, "lab")
    trusted = path.with_name("trusted.keys")
    assert stat.S_IMODE(trusted.stat().st_mode) == 0o600
    assert sorted(one.name for one in trusted.parent.iterdir()) == ["signing.key", "trusted.keys"]
    found = verify(tmp_path / "a.isorun")
    assert (found.signature, found.by.name) == (TRUSTED, "lab")
    keys.forget("lab")
    assert verify(tmp_path / "a.isorun").signature == UNKNOWN_KEY


def test_a_signature_of_another_package_is_invalid(tmp_path):
    from forged_signatures import with_signature_of

    path, made = keys.new_key()
    keys.trust(made, "lab")
    first = recorded_study(tmp_path)
    pack(first, tmp_path / "a.isorun", key=path)
    pack(first, tmp_path / "b.isorun", key=path, with_code=False)
    swapped = tmp_path / "c.isorun"
    swapped.write_bytes(with_signature_of(tmp_path / "a.isorun", tmp_path / "b.isorun"))
    assert verify(swapped).signature == INVALID
    told = [one for one in analyse_runs(swapped).conditions if one.code == "signature-invalid"]
    assert [one.next_step for one in told] == [f"isorun verify {swapped} looks at everything"]
    assert not any(one.code == "signature-invalid" for one in analyse_runs(tmp_path / "a.isorun").conditions)
    stripped = tmp_path / "d.isorun"
    stripped.write_bytes(with_signature_of(tmp_path / "a.isorun", None))
    assert verify(stripped).signature == "unsigned"
    assert verify(stripped).address == verify(tmp_path / "a.isorun").address


def test_a_name_stands_for_one_key_and_what_is_no_key_is_said(tmp_path):
    _, first = keys.new_key(tmp_path / "a.key")
    _, second = keys.new_key(tmp_path / "b.key")
    keys.trust(first, "lab")
    with pytest.raises(InputError, match="the name of another key"):
        keys.trust(second, "lab")
    keys.trust(first, "institute")
    assert [key.name for key in keys.trusted_keys()] == ["institute"]
    for text in ("ed25519 AAAA", "ed25519 !", str(tmp_path / "none")):
        with pytest.raises(InputError):
            keys.public_key(text)
    (tmp_path / "no.key").write_text("-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n")
    with pytest.raises(InputError) as told:
        keys.signer(tmp_path / "no.key")
    assert "hunter2" not in told.value.message()
    for name in ("", "a b", "a\nb", "x" * 81):
        with pytest.raises(InputError, match="needs a name"):
            keys.trust(second, name)
    with pytest.raises(InputError, match="no key of the name"):
        keys.forget("nobody")
