"""The packages of a registry as a shelf: what each viewer sees of them, and who replicated them."""

import pytest

from isorun.errors import InputError, NothingRecorded, PackageError
from isorun.packages.names import parse_name
from isorun.registry import EVERYTHING, STRANGER
from isorun.registry.opening import Registry
from isorun.serving import registry_shelf
from isorun.serving.kept import AnalysedStudy
from isorun.serving.pages.home import home_page
from isorun.serving.pages.rendering import as_html
from isorun.serving.pages.study import study_page
from isorun.serving.registry_shelf import RegistryShelf
from isorun.testing.shelf_contract import ShelfContract
from registries_made import package, push, viewers

NAME = "lab/digits/toy"


@pytest.fixture(scope="module")
def checkers():
    from isorun.registry.checking import Checkers

    made = Checkers()
    yield made
    made.close()


class TestRegistryShelf(ShelfContract):
    @pytest.fixture(autouse=True)
    def shared(self, checkers):
        self.checkers = checkers

    def make_shelf(self, folder):
        self.registry = Registry(folder / "registry", checkers=self.checkers)
        self.users = viewers(self.registry)
        push(self.registry, self.users["ann"], NAME, package(1))
        return RegistryShelf("registry", self.registry), f"{NAME}@1"

    @pytest.fixture(autouse=True)
    def closed(self):
        yield
        self.registry.close()

    def test_a_package_of_a_group_is_for_its_members(self, shelf_and_name):
        shelf, name = shelf_and_name
        assert [entry.name for entry in shelf.entries(self.users["bob"])] == [name]
        assert list(shelf.entries(self.users["carl"])) == list(shelf.entries(STRANGER)) == []
        with pytest.raises(NothingRecorded):
            shelf.opened(name, self.users["carl"])

    def test_a_name_without_a_version_is_the_latest_and_a_version_stays(self, shelf_and_name):
        shelf, name = shelf_and_name
        latest, first = shelf.revision(NAME, EVERYTHING), shelf.revision(name, EVERYTHING)
        assert latest == first
        push(self.registry, self.users["bob"], NAME, package(2))
        assert shelf.revision(name, EVERYTHING) == first
        assert shelf.revision(NAME, EVERYTHING) != latest
        assert [entry.name for entry in shelf.entries(EVERYTHING)] == [f"{NAME}@2"]
        assert shelf.opened(name, EVERYTHING).entry.name == name

    def test_who_replicated_it_is_told_and_counts_as_a_change(self, shelf_and_name):
        shelf, name = shelf_and_name
        before = shelf.revision(name, EVERYTHING)
        address = shelf.opened(name, EVERYTHING).entry.address
        assert (shelf.opened(name, EVERYTHING).entry.tier, shelf.opened(name, EVERYTHING).entry.replicated_by) == (
            "self-reported",
            (),
        )
        push(self.registry, self.users["bob"], "bob/digits/again", package(3), replicates=address)
        entry = shelf.opened(name, EVERYTHING).entry
        assert (entry.tier, entry.replicated_by) == ("replicated", ("bob",))
        study = shelf.opened(name, EVERYTHING)
        page = study_page(AnalysedStudy(shelf.name, study, study.analysed()), {})
        assert "replicated by bob" in page.facts
        assert "replicated" not in page.facts
        assert page.data["replicated_by"] == ["bob"]
        (linked,) = page.data["replications"]
        assert (linked["by"], linked["package"]) == ("bob", "bob/digits/again@1")
        assert f'href="{linked["page"]}"' in as_html(page).decode()
        assert shelf.opened("bob/digits/again@1", EVERYTHING).entry.address == linked["address"]
        assert shelf.revision(name, EVERYTHING) != before

    def test_a_replication_leads_back_to_what_it_replicates(self, shelf_and_name):
        shelf, name = shelf_and_name
        address = shelf.opened(name, EVERYTHING).entry.address
        push(self.registry, self.users["bob"], "bob/digits/again", package(3), replicates=address, public=True)

        def page_for(viewer):
            study = shelf.opened("bob/digits/again@1", viewer)
            return study_page(AnalysedStudy(shelf.name, study, study.analysed()), {})

        page, to = page_for(EVERYTHING), f"/shelves/registry/{name}/study"
        assert page.data["replicates"] == {"address": address, "package": name, "page": to}
        assert f'href="{to}"' in as_html(page).decode()
        other = page_for(STRANGER)
        assert other.data["replicates"] == {"address": address, "package": None, "page": None}
        assert name not in as_html(other).decode(), "what one may not see is not named"
        assert f"replicates {address[:19]}" in other.facts
        assert shelf.revision("bob/digits/again", STRANGER) != shelf.revision("bob/digits/again", EVERYTHING)
        study = shelf.opened(name, EVERYTHING)
        assert study_page(AnalysedStudy(shelf.name, study, study.analysed()), {}).data["replicates"] is None

    def test_of_very_many_the_latest_are_listed_and_the_others_counted(self, shelf_and_name, monkeypatch):
        shelf, name = shelf_and_name
        push(self.registry, self.users["ann"], "lab/digits/z-later-one", package(2))
        assert [entry.name for entry in shelf.entries(EVERYTHING)] == ["lab/digits/z-later-one@1", name]
        assert shelf.unlisted(EVERYTHING) == 0
        monkeypatch.setattr(registry_shelf, "MOST_LISTED", 1)
        listed = shelf.entries(EVERYTHING)
        assert [entry.name for entry in listed] == ["lab/digits/z-later-one@1"], "not the first by name"
        assert (shelf.unlisted(EVERYTHING), shelf.unlisted(EVERYTHING, "digits/toy"), shelf.unlisted(STRANGER)) == (
            1,
            0,
            0,
        )
        assert [entry.name for entry in shelf.entries(EVERYTHING, "digits/toy")] == [name], "a search finds it"
        page = home_page([(shelf, entry) for entry in listed], {}, "ann", [(shelf, 1)])
        assert "1 more of the registry are not listed" in as_html(page).decode()
        assert page.data["not_listed"] == {"registry": 1}

    def test_a_file_that_is_damaged_or_gone_is_listed_as_such(self, shelf_and_name):
        shelf, name = shelf_and_name
        path = self.registry.blobs.path(self.registry.index.versions(EVERYTHING, parse_name(NAME))[0].digest)
        whole = path.read_bytes()
        path.chmod(0o600)
        path.write_bytes(whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:])
        assert [one.problem for one in shelf.entries(EVERYTHING)] == [""], "not every byte is read for a list"
        for damage, said in ((path.read_bytes(), "damaged"), (whole[:-1], "another size"), (b"", "another size")):
            path.write_bytes(damage)
            with pytest.raises(PackageError, match=said) as refused:
                shelf.opened(name, EVERYTHING)
            assert str(path) not in str(refused.value)
            (entry,) = shelf.entries(EVERYTHING)
            assert said in entry.problem
            assert "isorun registry verify" in entry.remedy
        path.unlink()
        assert [one.problem for one in shelf.entries(EVERYTHING)] == ["its file is not there"]
        path.write_bytes(whole)
        assert shelf.opened(name, EVERYTHING).records
        assert [one.problem for one in shelf.entries(EVERYTHING)] == [""]

    def test_it_is_found_by_name_study_and_metric(self, shelf_and_name):
        shelf, name = shelf_and_name
        for text in ("digits", "toy", "accuracy"):
            assert [entry.name for entry in shelf.entries(EVERYTHING, text)] == [name]
        assert list(shelf.entries(EVERYTHING, "resnet")) == []

    def test_the_first_page_says_when_it_was_pushed_and_where_to_log_in(self, shelf_and_name):
        shelf, _ = shelf_and_name

        def first_page(user):
            viewer = self.users[user] if user else STRANGER
            return home_page([(shelf, entry) for entry in shelf.entries(viewer)], {}, user)

        for stranger in ("", "carl"):
            page = first_page(stranger)
            assert page.first[0].startswith(f"There is no package here that {stranger or 'everyone'} may see")
            assert "isorun run" not in page.first[0]
        assert first_page("").related == (("log in", "/login"),)
        page = first_page("bob")
        assert page.related == (("bob: log out", "/login"),)
        (told,) = page.data["studies"]
        assert f", pushed at {told['pushed_at'][:10]}" in page.first[0]
        assert told["latest_run"] is None
        assert "pushed" in [column.title for column in page.tables()["studies"].columns]

    def test_what_is_too_large_for_a_page_is_refused_with_the_way_to_it(self, shelf_and_name, monkeypatch):
        shelf, name = shelf_and_name
        monkeypatch.setattr(registry_shelf, "_LARGEST", 10)
        with pytest.raises(InputError, match=f"isorun pull registry:{NAME}@1"):
            shelf.opened(name, EVERYTHING)


@pytest.mark.parametrize(("bound", "found"), [("_MOST_GROUPS", "1 groups"), ("_MOST_LOOKS", "that runs left")])
def test_a_package_that_would_take_its_readers_too_long_is_not_shown(registry, who, monkeypatch, bound, found):
    push(registry, who["ann"], "lab/a/b", package(1))
    shelf = RegistryShelf("registry", registry)
    monkeypatch.setattr(registry_shelf, bound, 0)
    with pytest.raises(InputError, match="too large to be shown here") as refused:
        shelf.opened("lab/a/b@1", who["ann"])
    assert found in refused.value.found


def test_a_package_that_far_more_comes_out_of_than_pages_have_room_for_is_not_shown(registry, who, monkeypatch):
    push(registry, who["ann"], "lab/a/b", package(1))
    shelf = RegistryShelf("registry", registry)
    assert shelf.opened("lab/a/b@1", who["ann"]).records
    monkeypatch.setattr(registry_shelf, "_MOST_OUT", 100)
    with pytest.raises(InputError, match="too large to be shown here"):
        shelf.opened("lab/a/b@1", who["ann"])
    assert not shelf.entries(who["ann"])[0].problem, "its file is not damaged"
