"""Places as real trackers left them: kept as files, made by the programs in making/."""

import gzip
import importlib.util
import shutil
import tarfile
from pathlib import Path

HERE = Path(__file__).parent
KEPT = HERE / "kept"


def _known():
    spec = importlib.util.spec_from_file_location("known_runs", HERE / "making" / "known_runs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


known = _known()


def unpacked(name, folder):
    """A kept file in the folder, unpacked."""
    source = KEPT / name
    if source.name.endswith(".tar.gz"):
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        return folder / source.name.removesuffix(".tar.gz")
    if source.is_dir():
        return Path(shutil.copytree(source, folder / source.name))
    if source.suffix != ".gz":
        return Path(shutil.copy(source, folder / source.name))
    target = folder / source.name.removesuffix(".gz")
    target.write_bytes(gzip.decompress(source.read_bytes()))
    return target


def last_values(*, odd=None):
    """What the last value of each metric of the known runs is, by run."""
    return {
        known.name(model, seed): {
            **known.rows(model, seed)[-1],
            "test_acc": known.test_acc(model, seed),
            **({} if odd is None else {"odd": odd}),
        }
        for model, seed in known.RUNS
    }
