"""Users and tokens: no account by default, hashes alone are kept, and no token makes a stronger one."""

import pytest

from isorun.errors import RegistryConflict, RegistryDenied, RegistryError, RegistryMissing
from isorun.registry import STRANGER, Scope, Viewer
from isorun.registry.opening import Registry
from isorun.registry.people import TokenAsked
from isorun.worker.redaction import without_secrets
from registries_made import tokens


def kept_bytes(registry):
    """All that a registry keeps, and the table of its audit log, as text."""
    files = [path.read_bytes() for path in registry.folder.rglob("*") if path.is_file()]
    rows = [
        str(registry.database.read(lambda rows, table=table: rows.all(f"SELECT * FROM {table}")))
        for table in ("audit", "tokens", "registry", "users")
    ]
    return b"".join(files) + "".join(rows).encode()


def test_there_is_no_account_before_it_is_set_up_and_its_token_is_good_once(registry):
    first, second = registry.people.set_up_token(), registry.people.set_up_token()
    assert registry.people.identify(first) is None, "a later one makes it void"
    viewer = registry.people.identify(second)
    assert viewer == Viewer(scopes=frozenset({Scope.SET_UP}))
    made = registry.people.set_up(viewer, "root")
    assert registry.people.identify(made.token).everything
    assert registry.people.identify(second) is None
    with pytest.raises(RegistryDenied, match="set up already"):
        registry.people.set_up(viewer, "eve")
    assert registry.people.set_up_token() is None
    for token in ("", "admin", "password", "0" * 64):
        assert registry.people.identify(token) is None


def test_a_set_up_token_ends(registry):
    token = registry.people.set_up_token()
    registry.database.write(lambda rows: rows.all("UPDATE registry SET set_up_until = '2026-01-01T00:00:00Z'"))
    assert registry.people.identify(token) is None


def test_no_token_is_kept_and_none_is_in_the_log(registry):
    one_time = registry.people.set_up_token()
    made = tokens(registry)
    ann = registry.people.identify(made["ann"])
    made["session"] = registry.people.session(made["ann"]).token
    made["narrow"] = registry.people.add_token(ann, TokenAsked((Scope.PUSH,), purpose="ci")).token
    kept = kept_bytes(registry)
    for token in (one_time, *made.values()):
        assert token.startswith("isorun_")
        assert len(token) > 43
        assert token.encode() not in kept
        assert token.rpartition("_")[2].encode() not in kept or len(token.rpartition("_")[2]) < 20
        assert token not in without_secrets(f"the token {token} was used")
        assert token.rpartition("_")[2].isalnum(), "with a sign in it some look like a name, and would be recorded"
    assert made["ann"] not in repr(registry.people.add_token(ann, TokenAsked()))


def test_a_hash_is_no_token(registry, who):
    (hashed,), *_ = registry.database.read(lambda rows: rows.all("SELECT hash FROM tokens"))
    assert registry.people.identify(hashed) is None


@pytest.mark.parametrize("days", [0, -1, 367, float("inf"), float("nan"), 1e300])
def test_every_token_ends(registry, who, days):
    with pytest.raises(RegistryError, match="a token ends"):
        registry.people.add_token(who["ann"], TokenAsked(days=days))


def test_no_token_makes_a_stronger_or_longer_one(registry, who):
    narrow = registry.people.add_token(who["ann"], TokenAsked((Scope.READ, Scope.ADMIN), ("lab",), days=2))
    viewer = registry.people.identify(narrow.token)
    assert viewer.owners == {"lab"}
    for asked in (
        TokenAsked((Scope.PUSH,)),
        TokenAsked((Scope.READ,), ("ann",)),
        TokenAsked((Scope.READ,), ("lab", "carl")),
    ):
        with pytest.raises(RegistryDenied):
            registry.people.add_token(viewer, asked)
    again = registry.people.add_token(viewer, TokenAsked((Scope.READ,), days=300))
    assert (again.owners, again.expires_at) == (("lab",), narrow.expires_at)
    with pytest.raises(RegistryDenied):
        registry.people.add_token(registry.people.identify(again.token), TokenAsked((Scope.READ,)))
    with pytest.raises(RegistryError, match="needs scopes"):
        registry.people.add_token(who["root"], TokenAsked((Scope.SET_UP,)))
    with pytest.raises(RegistryDenied):
        registry.people.add_token(STRANGER, TokenAsked())


def test_an_everyday_token_of_who_administrates_is_an_ordinary_one(registry, who):
    made = registry.people.add_token(who["root"], TokenAsked((Scope.READ, Scope.PUSH)))
    viewer = registry.people.identify(made.token)
    assert not viewer.everything
    assert viewer.owners == {"root"}


def test_names_of_users_and_groups_are_one_kind_and_are_given_once(registry, who):
    for name in ("", "A", "a b", "../x", "a" * 65, "ann\n", "é"):
        with pytest.raises(RegistryError, match="called so"):
            registry.people.add_user(who["root"], name)
    for name in ("ann", "lab"):
        with pytest.raises(RegistryConflict):
            registry.people.add_user(who["root"], name)
    with pytest.raises(RegistryConflict):
        registry.people.add_member(who["root"], "ann", "bob")
    with pytest.raises(RegistryMissing):
        registry.people.add_member(who["root"], "lab", "nobody")
    registry.people.close_user(who["root"], "carl")
    with pytest.raises(RegistryConflict):
        registry.people.add_user(who["root"], "carl")


def test_a_lost_token_is_renewed_by_who_has_the_files(registry, who):
    made = registry.people.renew("root")
    assert registry.people.identify(made.token).everything
    with pytest.raises(RegistryMissing):
        registry.people.renew("nobody")


def test_a_closed_user_gets_no_token_that_would_be_worth_nothing(registry, who):
    registry.people.close_user(who["root"], "carl")
    with pytest.raises(RegistryConflict, match="carl was closed"):
        registry.people.renew("carl")
    with pytest.raises(RegistryConflict, match="carl was closed"):
        registry.people.add_token(who["root"], TokenAsked(), user="carl")


def test_a_registry_that_is_not_there_is_not_made_by_looking(tmp_path):
    with pytest.raises(RegistryError, match="there is no registry"):
        Registry(tmp_path / "none", create=False)
    assert not (tmp_path / "none").exists()
