"""Names, versions, yanks and tiers, the same in SQLite and in PostgreSQL."""

from contextlib import closing

import pytest

from isorun.errors import InputError, PackageError, RegistryConflict, RegistryDenied, RegistryError, RegistryMissing
from isorun.packages.names import parse_name, parse_wanted
from isorun.registry import STRANGER, index
from isorun.registry.opening import Registry
from isorun.registry.verifying import verify_registry
from isorun.study.records import RunState
from registries_made import package, push

NAME = "lab/cifar10/resnet56"


def test_versions_are_numbered_and_the_same_bytes_are_the_same_answer(registry, who):
    first = push(registry, who["ann"], NAME, package(1))
    assert (first.version.version, first.new) == (1, True)
    assert push(registry, who["bob"], NAME, package(2)).version.version == 2
    again = push(registry, who["bob"], NAME, package(1))
    assert (again.version, again.new) == (first.version, False)
    assert push(registry, who["ann"], f"{NAME}@1", package(1)).new is False
    assert push(registry, who["ann"], f"{NAME}@3", package(3)).version.version == 3
    assert [item.version for item in registry.index.versions(who["bob"], parse_name(NAME))] == [3, 2, 1]


@pytest.mark.parametrize(
    ("version", "seed", "said"),
    [("@1", 3, "with other bytes"), ("@2", 1, "has these bytes already"), ("@5", 3, "cannot be pushed yet")],
)
def test_a_version_is_never_another_one(registry, who, version, seed, said):
    for number in (1, 2):
        push(registry, who["ann"], NAME, package(number))
    lines = registry.database.read(lambda rows: rows.one("SELECT count(*) FROM audit"))
    with pytest.raises(RegistryConflict, match=said):
        push(registry, who["ann"], f"{NAME}{version}", package(seed))
    assert registry.database.read(lambda rows: rows.one("SELECT count(*) FROM audit")) == lines


def test_the_index_refuses_to_change_a_version_or_a_line_of_the_log(registry, who):
    push(registry, who["ann"], NAME, package(1))
    for change in (
        "UPDATE versions SET digest = 'x'",
        "UPDATE versions SET pushed_by = 'bob'",
        "DELETE FROM versions",
        "DELETE FROM audit",
        "UPDATE audit SET user_name = 'bob'",
    ):
        with pytest.raises(Exception, match=r"never changes|only grows|never removed"):
            registry.database.write(lambda rows, change=change: rows.all(change))
    assert verify_registry(registry).damage == ()


def test_what_is_yanked_is_had_by_its_number_alone(registry, who):
    for number in (1, 2):
        push(registry, who["ann"], NAME, package(number))
    yanked = registry.index.yank(who["bob"], parse_wanted(f"{NAME}@2"), "the test data\x1b[2J were seen")
    assert (yanked.yanked_by, yanked.yank_reason) == ("bob", "the test data\N{REPLACEMENT CHARACTER}[2J were seen")
    assert registry.index.version(who["ann"], parse_wanted(NAME)).version == 1
    assert registry.index.version(who["ann"], parse_wanted(f"{NAME}@2")).yanked_at
    registry.index.yank(who["bob"], parse_wanted(f"{NAME}@1"), "too")
    with pytest.raises(RegistryMissing, match="there is no lab"):
        registry.index.version(who["ann"], parse_wanted(NAME))
    assert registry.index.search(who["ann"]) == []
    registry.index.unyank(who["ann"], parse_wanted(f"{NAME}@2"))
    assert registry.index.version(who["ann"], parse_wanted(NAME)).version == 2
    with pytest.raises(RegistryError, match="needs a reason"):
        registry.index.yank(who["ann"], parse_wanted(NAME), " \n")


def test_bytes_with_two_names_are_had_by_the_one_that_was_not_yanked(registry, who):
    first = push(registry, who["ann"], NAME, package(1)).version
    other = push(registry, who["ann"], f"{NAME}-again", package(1)).version
    assert first.address == other.address
    registry.index.yank(who["ann"], parse_wanted(f"{NAME}@1"), "its name was wrong")
    found = registry.index.addressed(who["ann"], first.address)
    assert [(item.name.name, bool(item.yanked_at)) for item in found] == [("resnet56-again", False), ("resnet56", True)]


def test_who_yanks_twice_for_the_same_reason_has_yanked_once(registry, who):
    push(registry, who["ann"], NAME, package(1))
    first, again = (registry.index.yank(who["ann"], parse_wanted(f"{NAME}@1"), "it was wrong") for _ in range(2))
    assert first == again
    assert registry.database.read(lambda rows: rows.one("SELECT count(*) FROM audit WHERE action = 'yanked'"))[0] == 1


def test_an_answer_holds_no_more_packages_than_are_found_at_once(registry, who, monkeypatch):
    for number in range(3):
        push(registry, who["ann"], f"{NAME}-{number}", package(number + 1))
    monkeypatch.setattr(index, "_FOUND_AT_ONCE", 2)
    assert len(registry.index.search(who["ann"], most=50)) == 2
    assert len(registry.index.search(who["ann"], most=0)) == 1


def test_private_packages_do_not_exist_for_others(registry, who):
    address = push(registry, who["ann"], NAME, package(1)).version.address
    for name in ("carl", None):
        viewer = who[name] if name else STRANGER
        for ask in (
            lambda v: registry.index.versions(v, parse_name(NAME)),
            lambda v: registry.index.version(v, parse_wanted(NAME)),
            lambda v: registry.index.addressed(v, address),
            lambda v: registry.index.replications(v, address),
            lambda v: registry.index.yank(v, parse_wanted(NAME), "x"),
            lambda v: registry.index.show_to_all(v, parse_name(NAME), public=True),
        ):
            with pytest.raises(RegistryMissing):
                ask(viewer)
        assert registry.index.search(viewer, "resnet56") == []
    assert [item.address for item in registry.index.search(who["root"], "resnet56")] == [address]
    registry.index.show_to_all(who["bob"], parse_name(NAME), public=True)
    assert registry.index.version(STRANGER, parse_wanted(NAME)).public
    with pytest.raises(RegistryDenied):
        registry.index.show_to_all(who["carl"], parse_name(NAME), public=False)
    with pytest.raises(RegistryDenied):
        registry.index.yank(who["carl"], parse_wanted(NAME), "x")


def test_a_package_is_replicated_by_others_only(registry, who):
    target = push(registry, who["ann"], NAME, package(1), public=True).version
    push(registry, who["bob"], "bob/copies/resnet56", package(1), public=True)

    def tier():
        found = registry.index.version(STRANGER, parse_wanted(NAME))
        assert found.replicated_by == tuple(one.by for one in found.replications)
        return found.tier, found.replicated_by

    push(registry, who["ann"], "ann/own/again", package(5), replicates=target.address, public=True)
    push(registry, who["bob"], "bob/own/again", package(6), replicates=target.address, public=True)
    assert tier() == ("self-reported", ())
    push(registry, who["carl"], "carl/mine/resnet56", package(7), replicates=target.address)
    assert tier() == ("self-reported", ()), "what nobody may see vouches for nothing"
    registry.index.show_to_all(who["carl"], parse_name("carl/mine/resnet56"), public=True)
    assert tier() == ("replicated", ("carl",))
    (linked,) = registry.index.replications(STRANGER, target.address)
    assert (str(linked.name), linked.replicates) == ("carl/mine/resnet56", target.address)
    registry.index.yank(who["carl"], parse_wanted("carl/mine/resnet56"), "wrong data")
    assert tier() == ("self-reported", ())


def test_runs_that_are_packed_anew_replicate_nothing(registry, who):
    target = push(registry, who["ann"], NAME, package(1, "toy", 2), public=True).version
    for copied in (package(1, "again", 2), package(2), package(1, "toy", 2, 3)):
        with pytest.raises(RegistryError, match="does not replicate runs that are in it"):
            push(registry, who["carl"], "carl/mine/resnet56", copied, replicates=target.address, public=True)
    with pytest.raises(RegistryError, match="another study"):
        push(registry, who["carl"], "carl/mine/resnet56", package(3, "else"), replicates=target.address, public=True)
    push(registry, who["carl"], "carl/mine/resnet56", package(3, "toy", 4), replicates=target.address, public=True)
    found = registry.index.version(STRANGER, parse_wanted(NAME))
    assert found.tier == "replicated"
    assert "marks" not in found.to_json()["package"]


def test_runs_of_which_none_finished_replicate_nothing(registry, who):
    target = push(registry, who["ann"], NAME, package(1), public=True).version
    failed = package(2, state=RunState.FAILED)
    with pytest.raises(RegistryError, match="without a finished run replicates nothing") as refused:
        push(registry, who["carl"], "carl/mine/resnet56", failed, replicates=target.address, public=True)
    assert refused.value.found == "1 failed"
    assert registry.index.version(STRANGER, parse_wanted(NAME)).tier == "self-reported"
    assert push(registry, who["carl"], "carl/mine/resnet56", failed, public=True).new, "as a package it may be kept"


def test_what_is_replicated_has_to_be_there_and_be_another(registry, who):
    target = push(registry, who["ann"], NAME, package(1)).version.address
    with pytest.raises(RegistryMissing):
        push(registry, who["carl"], "carl/a/b", package(2), replicates=target)
    with pytest.raises(RegistryMissing):
        push(registry, who["ann"], "ann/a/b", package(2), replicates=f"sha256:{'0' * 64}")
    with pytest.raises(RegistryError, match="itself"):
        push(registry, who["ann"], "ann/a/b", package(1), replicates=target)
    with pytest.raises(RegistryError, match="no address"):
        push(registry, who["ann"], "ann/a/b", package(1), replicates="latest")


def test_pushing_for_another_owner_is_refused_before_anything_is_received(registry, who):
    for name in ("root", "carl", "ann"):
        target = "bob/a/b" if name != "root" else "nobody/a/b"
        if name != "root":
            with pytest.raises(RegistryDenied, match="may not push packages of bob"):
                registry.index.refuse_push(who[name], parse_name(target))
    with pytest.raises(RegistryMissing, match="owner nobody") as missing:
        push(registry, who["root"], "nobody/a/b", package(1))
    assert "isorun registry join nobody USER" in str(missing.value.hint)


def test_search_finds_all_words_and_takes_them_as_they_are(registry, who):
    push(registry, who["ann"], "lab/cifar10/resnet56", package(1), public=True)
    push(registry, who["ann"], "lab/cifar10/resnet_8", package(2, "shapes"), public=True)
    push(registry, who["carl"], "carl/digits/lenet", package(3), public=True)
    found = lambda words, **rest: [item.name.name for item in registry.index.search(STRANGER, words, **rest)]  # noqa: E731
    assert found("") == ["lenet", "resnet56", "resnet_8"]
    assert found("CIFAR10 toy") == ["resnet56"]
    assert found("shapes") == ["resnet_8"]
    assert found("resnet_") == ["resnet_8"]
    assert found("%") == found("' OR 1=1 --") == found("!") == []
    assert found("", most=1) == ["lenet"]
    assert found("", after="carl/digits/lenet") == ["resnet56", "resnet_8"]
    assert found("x\x00\ud800") == []
    assert found(" ".join(["resnet56", "cifar10"] * 20)) == ["resnet56"], "the same word again is no other"
    with pytest.raises(InputError, match="too many words") as refused:
        found(" ".join(f"cifar10 {number}" for number in range(20)))
    assert (refused.value.found, refused.value.allowed[:8]) == ("21 different ones", "up to 20")


def test_damaged_packages_are_refused_and_leave_nothing(registry, who):
    for data in (b"", b"x" * 100, package(1)[:-1], package(1).replace(b"lenet", b"Lenet")):
        with pytest.raises(PackageError) as raised:
            push(registry, who["ann"], NAME, data)
        assert str(registry.folder) not in raised.value.message()
    assert list((registry.folder / "blobs").rglob("*.part")) == []
    assert list((registry.folder / "blobs" / "sha256").glob("*/*")) == []
    with pytest.raises(RegistryMissing):
        registry.index.versions(who["ann"], parse_name(NAME))


class Meanwhile:
    """Checkers in whose time something else happens."""

    def __init__(self, checkers, happens):
        self._checkers = checkers
        self._happens = happens

    def check(self, path, size):
        found = self._checkers.check(path, size)
        self._happens()
        return found


@pytest.mark.parametrize("ended", ["revoked", "closed", "left"])
def test_who_may_push_no_more_once_the_package_is_verified_has_pushed_nothing(registry, who, checkers, ended):
    people, bob, root = registry.people, who["bob"], who["root"]
    ends = {
        "revoked": lambda: people.revoke(root, bob.token),
        "closed": lambda: people.close_user(root, "bob"),
        "left": lambda: people.remove_member(root, "lab", "bob"),
    }
    again = Registry(registry.folder, registry.url, checkers=Meanwhile(checkers, ends[ended]))
    with closing(again), pytest.raises(RegistryDenied):
        push(again, bob, NAME, package(1))
    with pytest.raises(RegistryMissing):
        registry.index.versions(who["ann"], parse_name(NAME))
    assert list((registry.folder / "blobs" / "sha256").glob("*/*")) == []


def test_a_registry_is_opened_again_as_it_was(registry, who):
    before = push(registry, who["ann"], NAME, package(1)).version
    again = Registry(registry.folder, registry.url)
    assert again.index.version(who["ann"], parse_wanted(NAME)) == before
    assert b"".join(again.blobs.pieces(before.digest)) == package(1)
    again.close()
