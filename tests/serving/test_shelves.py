"""Shelves: what every one of them promises, over stores and packages."""

import shutil
import zipfile

import pytest
from read_pages import ReadPage
from served import served
from shown_studies import kept, optimizers, packed, trained

import isorun
from isorun.cli.main import main
from isorun.errors import NothingRecorded, PackageError, StoreMissing
from isorun.registry import EVERYTHING, STRANGER
from isorun.serving import shelves
from isorun.serving.shelves import PackageShelf, StoreShelf, shelves_of
from isorun.testing.shelf_contract import ShelfContract

SMALL = {"approaches": {"adam": "python train.py"}, "levels": ["default"], "seeds": [1], "repeats": 2}


def small(folder, **changes):
    (folder / "train.py").write_text("import isorun\n")
    study = optimizers(folder, **(SMALL | changes))
    return kept(study, folder / ".isorun"), folder / ".isorun"


class TestStoreShelf(ShelfContract):
    def make_shelf(self, folder):
        self.folder = folder
        _, place = small(folder)
        return StoreShelf("here", str(place)), "optimizers"

    def add_a_run(self, shelf, name):
        small(self.folder, repeats=3)
        return True


class TestPackageShelf(ShelfContract):
    def make_shelf(self, folder):
        _, place = small(folder)
        return PackageShelf("packages", [packed(folder, place)]), "optimizers"


@pytest.fixture
def place(tmp_path):
    return small(tmp_path)[1]


def test_a_store_that_is_not_there_is_refused_at_once(tmp_path):
    with pytest.raises(StoreMissing):
        shelves_of([str(tmp_path / "nothing")])
    assert not (tmp_path / "nothing").exists()


def test_every_shelf_has_a_name_of_its_own_that_fits_an_address(tmp_path):
    places = []
    for name in ("lab", "Läb ß/lab", "x/lab"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        places.append(str(small(folder)[1]))
    names = [shelf.name for shelf in shelves_of(places)]
    assert names == ["lab", "lab-2", "lab-3"]


def test_two_packages_of_one_name_are_told_apart(tmp_path, place):
    other = tmp_path / "other"
    other.mkdir()
    first = packed(tmp_path, place)
    second = shutil.copy(first, other / first.name)
    shelf = PackageShelf("packages", [first, second])
    assert {entry.name for entry in shelf.entries(EVERYTHING)} == {"optimizers", "optimizers-2"}


def test_a_damaged_package_is_listed_with_what_is_wrong_and_hides_no_other(tmp_path, place):
    whole, broken = packed(tmp_path, place), tmp_path / "broken.isorun"
    odd, gone = tmp_path / "odd one.isorun", tmp_path / "gone.isorun"
    broken.write_bytes(whole.read_bytes()[:-40])
    odd.write_bytes(b"")
    shelf = PackageShelf("packages", [broken, odd, gone, whole])
    entries = {entry.name: entry for entry in shelf.entries(EVERYTHING)}
    assert "damaged" in entries["broken"].problem
    assert entries["broken"].remedy == f"isorun verify {broken}"
    assert entries["odd one"].remedy == f"isorun verify '{odd}'"
    assert "No such file" in entries["gone"].problem
    assert (entries["optimizers"].runs, entries["optimizers"].problem) == (2, "")
    with pytest.raises(PackageError, match=r"isorun verify .*broken\.isorun"):
        shelf.opened("broken", EVERYTHING)


def test_a_byte_that_no_page_needs_is_damage_where_the_package_is_listed(tmp_path, place):
    path = packed(tmp_path, place)
    with zipfile.ZipFile(path) as members:
        crate = members.getinfo("ro-crate-metadata.json")
    data = bytearray(path.read_bytes())
    data[crate.header_offset + 200] ^= 1
    path.write_bytes(data)
    (entry,) = PackageShelf("packages", [path]).entries(EVERYTHING)
    assert entry.problem == "it is damaged: ro-crate-metadata.json: it is not what the manifest says"
    assert main(["verify", str(path)]) == 3, "what the entry tells to type says the same"


def test_the_first_page_marks_what_is_damaged_and_shows_the_rest(tmp_path, place):
    whole, broken = packed(tmp_path, place), tmp_path / "broken.isorun"
    broken.write_bytes(whole.read_bytes()[:-40])
    with served([str(whole), str(broken)]) as client:
        page = ReadPage(client.get("/").body.decode())
        assert "/shelves/packages/optimizers/study" in page.links
        assert "/shelves/packages/broken/study" not in page.links
        assert f"it is damaged: this is no package isorun verify {broken}" in page.shown
        told = {one["study"]: one for one in client.get("/home.json").json["studies"]}
        assert (told["broken"]["next"], told["optimizers"]["problem"]) == (f"isorun verify {broken}", None)
        assert f"isorun verify {broken}" in client.get("/home.csv?table=problems").body.decode()
        refused = client.get("/shelves/packages/broken/study")
        assert (refused.status, refused.error["next"]) == (422, f"isorun verify {broken}")
    with served([str(broken)]) as client:
        assert "What is here cannot be shown" in client.get("/").body.decode()


def test_a_package_that_is_replaced_is_read_again(tmp_path, place):
    path = packed(tmp_path, place)
    shelf = PackageShelf("packages", [path])
    before = shelf.revision("optimizers", EVERYTHING)
    small(tmp_path, repeats=3)
    packed(tmp_path, place)
    assert shelf.revision("optimizers", EVERYTHING) != before
    assert len(shelf.opened("optimizers", EVERYTHING).records) == 3


def test_a_study_is_found_by_what_it_compares_and_measures(place):
    (entry,) = StoreShelf("here", str(place)).entries(EVERYTHING)
    assert all(entry.matches(text) for text in ("", "OPTI", "adam", "test_acc adam"))
    assert not entry.matches("adam resnet")


def test_a_store_tells_strangers_nothing(place):
    shelf = StoreShelf("here", str(place))
    assert list(shelf.entries(STRANGER)) == []
    with pytest.raises(NothingRecorded):
        shelf.standing("optimizers", STRANGER)


def test_a_study_that_cannot_be_read_is_listed_beside_the_others(place):
    with isorun.session.open_store(str(place)) as store:
        store.documents("studies").write("odd", {"no": "study"})
    entries = {entry.name: entry for entry in StoreShelf("here", str(place)).entries(EVERYTHING)}
    assert "cannot be read" in entries["odd"].problem
    assert entries["optimizers"].runs == 2


def test_runs_that_came_while_it_is_open_are_seen(place, tmp_path, monkeypatch):
    monkeypatch.setattr("isorun.serving.shelves._LOOKED_AT_SECONDS", -1.0)
    shelf = StoreShelf("here", str(place))
    assert [entry.runs for entry in shelf.entries(EVERYTHING)] == [2]
    small(tmp_path, repeats=4)
    assert [entry.runs for entry in shelf.entries(EVERYTHING)] == [4]
    kept(optimizers(tmp_path, name="later", **{**SMALL, "approaches": {"lion": "python train.py"}}), place, trained)
    assert [entry.name for entry in shelf.entries(EVERYTHING)] == ["later", "optimizers"]


def test_the_study_whose_latest_run_began_last_is_the_first(place, tmp_path):
    kept(optimizers(tmp_path, name="another", **(SMALL | {"approaches": {"lion": "python train.py --lion"}})), place)
    shelf = StoreShelf("here", str(place))
    last = shelf.entries(EVERYTHING)[-1].name
    for cell in shelf._study(last).cells:
        shelf._began[cell] = dict.fromkeys(shelf._began[cell], "2999-01-01T00:00:00Z")
    shelf._listed = type(shelf._listed)()
    assert shelf.entries(EVERYTHING)[0].name == last
    shelf.close()


def test_many_who_ask_at_once_have_the_store_looked_at_once(place, monkeypatch):
    shelf, looked = StoreShelf("here", str(place)), []
    monkeypatch.setattr(StoreShelf, "_look", lambda _, name: looked.append(name) or "seen")
    assert {shelf.revision("optimizers", EVERYTHING) for _ in range(5)} == {"seen"}
    assert looked == ["optimizers"]
    monkeypatch.setattr(shelves, "_LOOKED_AT_SECONDS", -1.0)
    shelf.revision("optimizers", EVERYTHING)
    assert looked == ["optimizers"] * 2
    shelf.close()


def test_records_that_were_read_for_a_list_are_not_read_for_the_next(place, monkeypatch):
    shelf = StoreShelf("here", str(place))
    before = shelf._list()

    def refused(*_):
        raise AssertionError("no run is new")

    monkeypatch.setattr(shelf._opened_store(), "records", refused)
    assert shelf._list() == before
    shelf.close()
