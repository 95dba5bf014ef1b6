"""MNIST, Fashion-MNIST, digits, CIFAR-10 and CIFAR-100: whole, from their authors, never in a pickled form."""

from __future__ import annotations

from typing import Final

from isorun.zoo.data.dataset import Checksum, Dataset, RemoteFile

__all__ = ["IMAGE_SETS"]

_IDX: Final = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_ZIPPED: Final = tuple(f"{name}.gz" for name in _IDX)
_SCIKIT_LEARN: Final = "5f920ef810b73e0f475a93450f11a791b4c0fc44"
_CIFAR_LICENCE: Final = "none stated (research use, cite the report)"
_CIFAR_CITATION: Final = (
    "A. Krizhevsky. Learning Multiple Layers of Features from Tiny Images. University of Toronto, 2009."
)


def _mnist_file(name: str, size: int, sha256: str) -> RemoteFile:
    return RemoteFile(
        path=name,
        urls=(
            f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}",
            f"https://storage.googleapis.com/cvdf-datasets/mnist/{name}",
            f"http://yann.lecun.com/exdb/mnist/{name}",
        ),
        size=size,
        checksum=Checksum("sha256", sha256, "published by several loaders (Guild AI, TorchVision for Ruby)"),
    )


def _fashion_file(name: str, size: int, md5: str) -> RemoteFile:
    return RemoteFile(
        path=name,
        urls=(
            f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{name}",
            f"https://storage.googleapis.com/tensorflow/tf-keras-datasets/{name}",
        ),
        size=size,
        checksum=Checksum("md5", md5, "published by the authors and by torchvision"),
    )


MNIST: Final = Dataset(
    name="mnist",
    title="handwritten digits: 60,000 + 10,000, 28x28 grey",
    licence="CC BY-SA 3.0",
    citation="Y. LeCun et al. Gradient-Based Learning Applied to Document Recognition, 1998.",
    papers=("ase20",),
    files=(
        _mnist_file(_ZIPPED[0], 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        _mnist_file(_ZIPPED[1], 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        _mnist_file(_ZIPPED[2], 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        _mnist_file(_ZIPPED[3], 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    ),
    prepared=(_IDX, _ZIPPED, ("mnist.npz",)),
)
FASHION: Final = Dataset(
    name="fashion-mnist",
    title="clothing: 60,000 + 10,000, 28x28 grey",
    licence="MIT",
    citation="H. Xiao, K. Rasul, R. Vollgraf. Fashion-MNIST: a Novel Image Dataset. arXiv:1708.07747, 2017.",
    papers=("ase20",),
    files=(
        _fashion_file(_ZIPPED[0], 26421880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        _fashion_file(_ZIPPED[1], 29515, "25c81989df183df01b3e8a0aad5dffbe"),
        _fashion_file(_ZIPPED[2], 4422102, "bef4ecab320f06d8554ea6380940ec79"),
        _fashion_file(_ZIPPED[3], 5148, "bb300cfdad3c16e7a12a480ee83cd310"),
    ),
    prepared=(_IDX, _ZIPPED, ("fashion-mnist.npz",)),
    system=("/usr/share/datasets/fashion-mnist",),
    note="Debian's package dataset-fashion-mnist is used where it is installed.",
)
DIGITS: Final = Dataset(
    name="digits",
    title="handwritten digits: 1,797, 8x8 grey",
    licence="CC BY 4.0 (UCI)",
    citation="E. Alpaydin, C. Kaynak. Optical Recognition of Handwritten Digits. UCI, 1998 (the copy in scikit-learn).",
    papers=("ase20",),
    files=(
        RemoteFile(
            path="digits.csv.gz",
            urls=(
                f"https://raw.githubusercontent.com/scikit-learn/scikit-learn/{_SCIKIT_LEARN}/sklearn/datasets/data/digits.csv.gz",
            ),
            size=57523,
            checksum=Checksum(
                "sha256",
                "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22",
                "computed from the file in scikit-learn 1.9.1",
            ),
        ),
    ),
    prepared=(("digits.npz",),),
    package=("sklearn", "datasets/data/digits.csv.gz"),
    note="Installed with scikit-learn; nothing is downloaded then.",
)
CIFAR10: Final = Dataset(
    name="cifar10",
    title="10 classes: 50,000 + 10,000, 32x32 colour",
    licence=_CIFAR_LICENCE,
    citation=_CIFAR_CITATION,
    papers=("ase20",),
    files=(
        RemoteFile(
            path="cifar-10-binary.tar.gz",
            urls=("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
            size=170052171,
            checksum=Checksum(
                "sha256",
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                "published by several loaders; the author's page gives md5 c32a1d4ab5d03f1284b67883e8d87530",
            ),
        ),
    ),
    prepared=(
        (*(f"cifar-10-batches-bin/data_batch_{n}.bin" for n in range(1, 6)), "cifar-10-batches-bin/test_batch.bin"),
        ("cifar10.npz",),
        ("cifar10-small.npz",),
    ),
    note="The binary version; the pickled one is never read.",
)
CIFAR100: Final = Dataset(
    name="cifar100",
    title="100 classes: 50,000 + 10,000, 32x32 colour",
    licence=_CIFAR_LICENCE,
    citation=_CIFAR_CITATION,
    papers=("ase20", "fewshot"),
    files=(
        RemoteFile(
            path="cifar-100-binary.tar.gz",
            urls=("https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",),
            size=168513733,
            checksum=Checksum(
                "sha256",
                "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
                "published by several loaders; the author's page gives md5 03b5dce01913d631647c71ecec9e9cb8",
            ),
        ),
    ),
    prepared=(
        ("cifar-100-binary/train.bin", "cifar-100-binary/test.bin", "cifar-100-binary/fine_label_names.txt"),
        ("cifar100.npz",),
        ("cifar100-small.npz",),
    ),
    note="The binary version; the pickled one is never read.",
)
IMAGE_SETS: Final = (MNIST, FASHION, DIGITS, CIFAR10, CIFAR100)
