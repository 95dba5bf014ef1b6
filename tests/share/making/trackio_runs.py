"""python trackio_runs.py FOLDER: the known runs by trackio, as a database and, where pyarrow is, as Parquet."""

import importlib.util
import os
import sys

import known_runs as known

os.chdir(sys.argv[1])
os.environ.update(TRACKIO_DIR=f"{sys.argv[1]}/trackio", HF_HUB_OFFLINE="1")
import trackio  # noqa: E402

for model, seed in known.RUNS:
    trackio.init(project=known.EXPERIMENT, name=known.name(model, seed), config=known.params(model, seed))
    for row in known.rows(model, seed):
        trackio.log({**row, "text": "words"})
    for value in known.ODD:
        trackio.log({"odd": value})
    trackio.log({"test_acc": known.test_acc(model, seed)})
    trackio.finish()
if importlib.util.find_spec("pyarrow"):
    from trackio.sqlite_storage import SQLiteStorage

    SQLiteStorage.export_to_parquet()
