"""The promises of a source over all of isorun's own, and sources of other distributions."""

from __future__ import annotations

import json
import struct

import pytest

from isorun import plugins
from isorun.errors import PluginError
from isorun.sources import AbstractSource, Found, Reading, installed_source
from isorun.sources.files import DataFiles, EventFiles
from isorun.sources.lines import LineMetrics
from isorun.sources.tensorboard import masked_crc32c
from isorun.study import Sources
from isorun.study.records import Series
from isorun.testing.source_contract import SourceContract


class TestLines(SourceContract):
    def make_source(self):
        return LineMetrics(Sources())

    def leave(self, folder):
        return ["Epoch 1: loss 0.5, acc 0.75", "Epoch 2: loss 0.25, acc 0.8"], {"loss": 0.25, "acc": 0.8}

    def test_files_of_an_earlier_run_are_not_read(self, tmp_path):
        assert dict(self.read(tmp_path, []).series) == {}, "the output is always this run's"


class TestPatterns(SourceContract):
    def make_source(self):
        return LineMetrics(Sources(stdout=False, patterns=(r"quality\s(?P<quality>[\d.]+)",)))

    def leave(self, folder):
        return ["quality 0.5", "quality 0.75"], {"quality": 0.75}


class TestDataFiles(SourceContract):
    def make_source(self):
        return DataFiles(Sources(files=("*.csv", "*.json")))

    def leave(self, folder):
        (folder / "metrics.csv").write_text("epoch,loss\n1,0.5\n2,0.25\n")
        (folder / "result.json").write_text(json.dumps({"test_acc": 0.75}))
        return [], {"loss": 0.25, "test_acc": 0.75}


def event(tag: str, step: int, value: float, wall_time: float) -> bytes:
    text = tag.encode()
    scalar = b"\x0a" + bytes([len(text)]) + text + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(scalar)]) + scalar
    message = (
        b"\x09" + struct.pack("<d", wall_time) + b"\x10" + bytes([step]) + b"\x2a" + bytes([len(summary)]) + summary
    )
    length = struct.pack("<Q", len(message))
    return length + struct.pack("<I", masked_crc32c(length)) + message + struct.pack("<I", masked_crc32c(message))


class TestEventFiles(SourceContract):
    def make_source(self):
        return EventFiles(Sources(tensorboard=(".",)))

    def leave(self, folder):
        events = [event("loss", step, value, 1_700_000_005.0) for step, value in ((1, 0.5), (2, 0.25))]
        (folder / "events.out.tfevents.1").write_bytes(b"".join(events))
        return [], {"loss": 0.25}


class Shouted(AbstractSource):
    """Metrics written as NAME! value, which no other source reads."""

    def __init__(self, sources, settings=()):
        super().__init__(sources, settings)
        self._values: dict[str, float] = {}

    def feed(self, line, seconds):
        name, sign, value = line.partition("! ")
        if sign and value in ("0.5", "0.25"):
            self._values[name.lower()] = float(value)

    def finish(self, working_folder, since_unix):
        series = {name: Series((0.0,), (0.0,), (value,)) for name, value in self._values.items()}
        return Found(series=series, origins=dict.fromkeys(series, f"shouted {self.settings[0]}"))


class TestShouted(SourceContract):
    def make_source(self):
        return Shouted(Sources(), ("x",))

    def leave(self, folder):
        return ["ELAN! 0.5", "ELAN! 0.25"], {"elan": 0.25}


class Asking(Shouted):
    """One that asks whether the run ended well."""

    def finish(self, working_folder, since_unix, **told):
        return Found(series={"whole": Series((0.0,), (0.0,), (float(told["whole"]),))}, origins={"whole": "told"})


class Breaking(Shouted):
    def feed(self, line, seconds):
        raise RuntimeError("on the first line")


class Careless(Shouted):
    """One that gives something else than it promises, as its setting says."""

    def finish(self, working_folder, since_unix):
        return {"elan": 0.5} if self.settings else Found(series={"elan": [0.5]}, origins={"elan": "careless"})


@pytest.fixture
def brings(monkeypatch):
    """Distributions that bring these sources."""

    def load(group, name, own=()):
        assert group == "isorun.sources"
        return {"shouted": Shouted, "asking": Asking, "breaking": Breaking, "careless": Careless, "nothing": object()}[
            name
        ]

    monkeypatch.setattr(plugins, "load", load)


def test_a_source_of_another_distribution_reads_beside_the_others(brings, tmp_path):
    reading = Reading(Sources(installed={"shouted": ("mine",)}))
    for line in ("ELAN! 0.5", "loss: 0.25"):
        reading.feed(line, 1.0)
    written, printed = reading.finish(tmp_path, 0.0)
    assert written.origins == {"elan": "shouted mine"}
    assert printed.results == {"loss": 0.25}


@pytest.mark.parametrize("whole", [True, False])
def test_a_source_that_takes_the_word_hears_whether_the_run_ended_well_and_others_work_without(brings, tmp_path, whole):
    reading = Reading(Sources(installed={"asking": (), "shouted": ("mine",)}))
    reading.feed("ELAN! 0.5", 1.0)
    written, _ = reading.finish(tmp_path, 0.0, whole=whole)
    assert {name: series.values for name, series in written.series.items()} == {"whole": (whole,), "elan": (0.5,)}
    assert written.notes == ()


def test_a_source_that_breaks_its_promise_is_switched_off_and_named(brings, tmp_path):
    reading = Reading(Sources(installed={"breaking": (), "shouted": ("mine",)}))
    for line in ("ELAN! 0.5", "loss: 0.25"):
        reading.feed(line, 1.0)
    written, printed = reading.finish(tmp_path, 0.0)
    assert [note.code for note in written.notes] == ["source-failed"]
    assert "'breaking'" in written.notes[0].message
    assert "on the first line" in written.notes[0].message
    assert set(written.series) == {"elan"}
    assert set(printed.series) == {"loss"}


@pytest.mark.parametrize(("settings", "why"), [(("x",), "it gave dict"), ((), "the metric 'elan' is list")])
def test_a_source_that_gives_something_else_than_metrics_fails_no_run(brings, tmp_path, settings, why):
    reading = Reading(Sources(installed={"careless": settings}))
    reading.feed("loss: 0.25", 1.0)
    written, printed = reading.finish(tmp_path, 0.0)
    assert [note.code for note in written.notes] == ["source-failed"]
    assert why in written.notes[0].message
    assert not written.series
    assert set(printed.series) == {"loss"}


def test_what_is_no_source_is_refused_by_name(brings):
    with pytest.raises(PluginError, match="'nothing' cannot be used"):
        installed_source("nothing")


def test_an_unknown_source_is_refused_by_name():
    with pytest.raises(PluginError, match="there is no source 'absent'"):
        Reading(Sources(installed={"absent": ()}))


def test_settings_of_sources_travel_as_json():
    sources = Sources(installed={"shouted": ("a", "b")})
    assert Sources.from_json(json.loads(json.dumps(sources.to_json()))) == sources
    assert "installed" not in Sources().to_json(), "a key that is not set is in no document"


def test_a_study_names_installed_sources():
    from isorun.study.parsing import sources

    assert sources({"installed": {"shouted": ["{run_dir}/x"]}}, "sources").installed == {"shouted": ("{run_dir}/x",)}


class Silent(Shouted):
    def finish(self, working_folder, since_unix):
        return None


def test_a_source_that_gives_nothing_at_the_end_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(plugins, "load", lambda *_names: Silent)
    written, _ = Reading(Sources(installed={"silent": ()})).finish(tmp_path, 0.0)
    assert [note.message for note in written.notes] == ["the source 'silent' failed and was not used: it gave nothing"]
