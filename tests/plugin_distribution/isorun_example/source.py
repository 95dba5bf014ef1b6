"""A source that reads a gauge: lines such as `gauge pressure 1.5`, the names it may read being its settings."""

from isorun.sources import AbstractSource, Found
from isorun.study.records import Series


class Gauge(AbstractSource):
    """Metrics of the gauges that the study names."""

    def __init__(self, sources, settings=()):
        super().__init__(sources, settings)
        self._read = {}

    def feed(self, line, seconds):
        words = line.split()
        if len(words) == 3 and words[0] == "gauge" and words[1] in self.settings and _is_number(words[2]):
            self._read.setdefault(words[1], []).append((seconds, float(words[2])))

    def finish(self, working_folder, since_unix):
        series = {
            name: Series(
                tuple(map(float, range(len(points)))),
                tuple(seconds for seconds, _ in points),
                tuple(value for _, value in points),
            )
            for name, points in self._read.items()
        }
        return Found(series=series, origins=dict.fromkeys(series, "gauge"))


def _is_number(text):
    return len(text) < 30 and text.replace(".", "", 1).isdigit() and text.isascii()
