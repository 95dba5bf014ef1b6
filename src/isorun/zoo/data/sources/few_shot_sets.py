"""Omniglot and the lists that say which classes of a data set are for training, validation and test."""

from __future__ import annotations

from typing import Final

from isorun.zoo.data.dataset import Checksum, Dataset, RemoteFile
from isorun.zoo.data.sources.repositories import repository_files

__all__ = ["FEW_SHOT_SETS"]

_PAPERS: Final = ("fewshot",)
_OMNIGLOT: Final = (
    "https://raw.githubusercontent.com/brendenlake/omniglot/057f034baf2ecb8530bc5710e5a23584d2a519cc/python"
)
_PROTONETS: Final = ("jakesnell/prototypical-networks", "c9bb4d258267c11cb6e23f0a19242d24ca98ad8a")
_TORCHMETA: Final = ("tristandeleu/pytorch-meta", "d55d89ebd47f340180267106bde3e4b723f23762")
_VINYALS: Final = "data/omniglot/splits/vinyals"
_RAVI: Final = "data/miniImagenet/splits/ravi"
_CIFAR_SPLITS: Final = "torchmeta/datasets/assets/cifar100"

OMNIGLOT: Final = Dataset(
    name="omniglot",
    title="32,460 drawings of 1,623 characters, 105x105, 1 bit",
    licence="MIT",
    citation=(
        "B. Lake, R. Salakhutdinov, J. Tenenbaum. Human-level concept learning through probabilistic program "
        "induction. Science, 2015."
    ),
    papers=_PAPERS,
    files=tuple(
        RemoteFile(
            path=f"{name}.zip",
            urls=(f"{_OMNIGLOT}/{name}.zip",),
            checksum=Checksum("md5", md5, "published by torchvision"),
        )
        for name, md5 in (
            ("images_background", "68d2efa1b9178cc56df9314c21c6e718"),
            ("images_evaluation", "6b91aef0f799c5bb55b94e3f2daec811"),
        )
    ),
    prepared=(("omniglot.npz",),),
    needs=("omniglot-vinyals",),
)
OMNIGLOT_VINYALS: Final = Dataset(
    name="omniglot-vinyals",
    title="lists of 4,112 / 688 / 1,692 Omniglot classes (Vinyals)",
    licence="MIT",
    citation="O. Vinyals et al. Matching Networks for One Shot Learning. NIPS, 2016 (lists by J. Snell).",
    papers=_PAPERS,
    files=repository_files(
        *_PROTONETS,
        _VINYALS,
        (
            ("train.txt", 133244, "984522c194c30fb678ce53304a160a42faf5403ad4f9a67010f32dd3a35738e0"),
            ("val.txt", 21312, "11f99e54faee3e26f53d3231c1cceac5bf7b8730e9be31cb6dab256551dc0c1a"),
            ("trainval.txt", 154556, "5276ae50c755596d0bff7f2284e85625695549a85ee6e36b6491ad1e5d1cc26a"),
            ("test.txt", 50372, "845264cc5c156180828ccf17915668b17ee21424d0170df6e7d81676aa5d1204"),
        ),
    ),
    note="Lists only; the drawings are the data set omniglot.",
)
CIFAR_FS: Final = Dataset(
    name="cifar-fs",
    title="lists of 64 / 16 / 20 classes of CIFAR-100",
    licence="MIT (lists)",
    citation="L. Bertinetto et al. Meta-learning with differentiable closed-form solvers. ICLR, 2019 (torchmeta).",
    papers=_PAPERS,
    files=repository_files(
        *_TORCHMETA,
        f"{_CIFAR_SPLITS}/cifar-fs",
        (
            ("train.json", 1878, "e0feef3aef13fc7320d5deef5ae77d91edd28041d9a173939ec48cea68135ef0"),
            ("val.json", 489, "d9d6e267b5dad5c2267ff7dd98ebb18bb016f7929b56839422bb34fb53bcb3ef"),
            ("test.json", 601, "e199c74ef4f014ea3f74da1b6cf74795d32747183426c2a7e6ee4308d3bf47e3"),
        ),
    ),
    needs=("cifar100",),
)
FC100: Final = Dataset(
    name="fc100",
    title="lists of 12 / 4 / 4 superclasses of CIFAR-100",
    licence="MIT (lists)",
    citation="B. Oreshkin, P. Rodriguez, A. Lacoste. TADAM. NeurIPS, 2018 (lists by torchmeta).",
    papers=_PAPERS,
    files=repository_files(
        *_TORCHMETA,
        f"{_CIFAR_SPLITS}/fc100",
        (
            ("train.json", 220, "a19e219adef452c071eb09d14758a9c45562643b9aafa38826e679ed285e117b"),
            ("val.json", 96, "6d228dac7040959f0c2f0385c53c2cd9a5369ba9eefd1b7cdceecb47041598c4"),
            ("test.json", 55, "d2cf86db6ec0250993b18cb78ebde10758f06eaaaff1611390e4442ee7c6fc41"),
        ),
    ),
    needs=("cifar100",),
)
MINIIMAGENET: Final = Dataset(
    name="miniimagenet",
    title="64 / 16 / 20 ImageNet classes, 600 images each (Ravi)",
    licence="ImageNet terms (images), MIT (lists)",
    citation="S. Ravi, H. Larochelle. Optimization as a Model for Few-Shot Learning. ICLR, 2017.",
    papers=_PAPERS,
    files=repository_files(
        *_PROTONETS,
        _RAVI,
        (
            ("train.csv", 1228815, "498519cd8e49ce97ed26a4a3638966698ae41ab35e9c68538319fc9b46ba7d2f"),
            ("val.csv", 307215, "5658a59921ca027ee76af92949869c5d6f41d77592ff3b18db325a9d10c893b9"),
            ("test.csv", 384015, "2b7cfa78342995761a572a8158e539bc4e0a80f9bbd7d00c1e17a460fbbb93fa"),
        ),
    ),
    prepared=(("train.csv.gz", "val.csv.gz", "test.csv.gz"),),
    brought=("images/*.jpg",),
    note=(
        "Only the lists can be downloaded: ImageNet's terms forbid passing the images on. Put the 60,000 jpg files "
        "that the lists name into the folder images/ beside them."
    ),
)
FEW_SHOT_SETS: Final = (OMNIGLOT, OMNIGLOT_VINYALS, CIFAR_FS, FC100, MINIIMAGENET)
