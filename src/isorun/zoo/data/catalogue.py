"""All data sets by name: files, where they come from, and how they are checked.

Whole, from their authors, and never in a pickled form where there is another; addresses in Git repositories are at a
fixed commit, so that they can never change. The search logs' pickles are only downloaded, and unpickled nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from isorun.errors import DataError, known_names
from isorun.zoo.data.dataset import Checksum, Dataset, RemoteFile, repository_files

__all__ = ["DATASETS", "FEW_SHOT_SETS", "IMAGE_SETS", "QUESTION_SETS", "SEARCH_LOGS", "dataset"]

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


_REPOSITORY: Final = "castorini/NCE-CNN-Torch"
_COMMIT: Final = "9f57a6aa1be493d0bc385a75a690378c9b951b4f"
_TRECQA: Final = (
    ("clean-dev/a.toks", 46134, "38b0f41198fbd8e2f7049c765bd6eec80f19f3d89b8328375f9f0f3c285d81e0"),
    ("clean-dev/b.toks", 148704, "293e2da8f19f730bea7220639d81007e770fee86a3c78efd5f8852518332fdde"),
    ("clean-dev/id.txt", 5189, "10407067ab99c0a7cc4f766961cd9a422eef8f8c86e64c16b0f3ed735b7ed89d"),
    ("clean-dev/sim.txt", 2234, "5ffc125c4f2d56a2bce14454778cb62982db1b16dd79ea94fc72ef8a8c80b2a0"),
    ("clean-test/a.toks", 63995, "47a55f951e843f4209503c5faf10a2b1007cb3ac2ceb94bc313d44e06964c7ef"),
    ("clean-test/b.toks", 201101, "5c3e3aafd58d4673e3d7b8bc1ea64f9aa450deb5d9ed24366a2009ae2501dc81"),
    ("clean-test/id.txt", 7210, "acf8ad9d77098c09de8bb728c07f258ffa60abc07d509400cc7f18919835ae33"),
    ("clean-test/sim.txt", 2884, "ad2990c8ea2f52e9ba0b41eda98c843078ba9ba58e184aa6c381a0b223ed1ab1"),
    ("raw-dev/a.toks", 47267, "bd78da19d0167bc2cefbe3e5681ee4e25232b4814bd3d27f7e0b242af4232578"),
    ("raw-dev/b.toks", 152678, "67a76e619f24bc336a7de0b09676244097757cbffc16b8a0f36ea2b66dae8048"),
    ("raw-dev/id.txt", 5335, "b45d9d0e3696e273d0ddf7bcefff79155ef9a18a1b8769f84bf149e32c6b2baf"),
    ("raw-dev/sim.txt", 2296, "41a84b41300bacc2014a31a733c76822df302ac5de4a39d5e78d6b5bad267389"),
    ("raw-test/a.toks", 66872, "b10396667b7a615a0c50ec70ce303922c9b33060e75bc61f54235d85603e339b"),
    ("raw-test/b.toks", 210917, "b5bf03edd713b81ff79ae2123c111d7c64b41bbf2b40453671cedc807ab81de8"),
    ("raw-test/id.txt", 7585, "87d04448974762a3c649694b8ebb4327edccfec5f3a7b9f409d37d685e610805"),
    ("raw-test/predictions-all.txt", 19591, "25ee64f63e64ce67ae01c50d25618f7b5d4956c3ea397618a43521857ad062d2"),
    ("raw-test/predictions.txt", 18380, "c45948f55d832b75a26e9058f332dc60f1e0a54f1e3c3dffebe0b7633dab84b7"),
    ("raw-test/sim.txt", 3034, "53bd32c46e7eb37c53e7b7d507446bc7e9e88c7006c4bba6dd72b6965c4b6c2c"),
    ("train-all/a.toks", 2295085, "ddfe89eca7669047edff80fed60023ff30a14344564a7a21eedcc1ede5237eec"),
    ("train-all/id.txt", 226568, "f78db231a6674ad298e9401e5602041ee0a594a1bbdcf3c5a235d502dc7ab49b"),
    ("train-all/sim.txt", 106834, "942f03ad4a2cfa46abfca2f879cfaf478308f50c1eefa0713844cd470cf44bff"),
    ("train/a.toks", 290727, "473a349f8d94a141c4a3febe271ffe4f49b16d60c5a9a28b310dfca81390a558"),
    ("train/b.toks", 648434, "0026390857e1bc40a8078c7cdaae6fa862147a0266fc2700d817d8c5c1e6b4a9"),
    ("train/id.txt", 13517, "9cb88d09bf157e3c246bc0497e914b90da4edbfec5d46585a08bca4dcb1864b8"),
    ("train/sim.txt", 9436, "5df8d6beabf4e714c90d7171531f08cec0b1171621abb44ab42126d23abcee81"),
)
_WIKIQA: Final = (
    ("dev/a.toks", 40762, "fae56c6879d39949832b043d9e60e25596d37bb45c5f30c815556ee8e1f9b135"),
    ("dev/b.toks", 145882, "7d95d571928715985c9aa6ef9bb0a0609a342e909b3809cd280c599329bcf99e"),
    ("dev/id.txt", 15440, "776236e6e968b75978ad559c0ba1abf5e7e08bc5ed0ba3383648b6aebc42aed9"),
    ("dev/sim.txt", 2260, "0986e5b75578db43056ff0770443e1d40e789735958f0abf3054bca7cef550e3"),
    ("test/a.toks", 80087, "3da499743c32db4f42a88cfef3287fe3641850a4c3c513e0d7bb88ea653342f9"),
    ("test/b.toks", 311020, "116ee3d0d016e07582afec2453ad124ca8df7a5a124c2e92271068ba2332d9ff"),
    ("test/id.txt", 31898, "95eedadb99750d569f671dde0996bc365bf672ce201d95b02634d49a7edc3183"),
    ("test/sim.txt", 4702, "ff957f92f255fe5075e808dadbde64d9855cda218b9db75d2ba3eb73571fad4a"),
    ("train/a.toks", 295217, "b8c0957552be60dfc5eb646284ab3865b61d0d02b97f69ee73775870774c646e"),
    ("train/b.toks", 1159356, "dcb874190dfa99c42d90532455576d7459a898278f1831bfff7a8d90a3a306dd"),
    ("train/id.txt", 117103, "03a515430d29216973cdec5bcb4fb2ac283f2dbb7e115af0378717bd7bd0cf23"),
    ("train/sim.txt", 17344, "85ad83b8e3643ed7e5f9707ba628bafed6991f883e0283111282ba199ea9f908"),
)
_TRAIN_ALL_ANSWERS: Final = RemoteFile(
    path="train-all/b.toks",
    urls=(f"https://raw.githubusercontent.com/{_REPOSITORY}/{_COMMIT}/data/TrecQA/train-all/b.toks",),
    checksum=Checksum(
        "git", "0fb2fc75dccc9efe12955f401c568bc52e9a5d90", f"git's own id of the file in github {_REPOSITORY}"
    ),
)
TRECQA: Final = Dataset(
    name="trecqa",
    title="answers to TREC questions, raw and clean",
    licence="none stated (TREC/LDC newswire, research use)",
    citation="M. Wang, N. Smith, T. Mitamura. What is the Jeopardy Model? EMNLP, 2007 (tokenised by J. Rao et al.).",
    papers=("tacl18",),
    files=(*repository_files(_REPOSITORY, _COMMIT, "data/TrecQA", _TRECQA), _TRAIN_ALL_ANSWERS),
    prepared=(tuple(f"{split}/pairs.tsv" for split in ("train", "raw-dev", "raw-test", "clean-dev", "clean-test")),),
)
WIKIQA: Final = Dataset(
    name="wikiqa",
    title="answers from Wikipedia to search questions",
    licence="Microsoft Research Data License (research use)",
    citation="Y. Yang, W. Yih, C. Meek. WikiQA. EMNLP, 2015 (tokenised by J. Rao et al.).",
    papers=("tacl18",),
    files=repository_files(_REPOSITORY, _COMMIT, "data/WikiQA", _WIKIQA),
    prepared=(tuple(f"{split}/pairs.tsv" for split in ("train", "dev", "test")),),
)
GLOVE: Final = Dataset(
    name="glove",
    title="400,000 word vectors, 50 to 300 dimensions (6B)",
    licence="PDDL 1.0",
    citation="J. Pennington, R. Socher, C. Manning. GloVe: Global Vectors for Word Representation. EMNLP, 2014.",
    papers=("tacl18",),
    files=(
        RemoteFile(
            path="glove.6B.zip",
            urls=(
                "https://nlp.stanford.edu/data/glove.6B.zip",
                "https://downloads.cs.stanford.edu/nlp/data/glove.6B.zip",
            ),
            size=862182613,
            checksum=Checksum(
                "sha256",
                "617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb",
                "published by several loaders (DataDeps, torchtext users, GluonNLP)",
            ),
        ),
    ),
    prepared=(("glove6B-pca50d-qa-vocab.npz",), ("glove.6B.50d.txt",)),
    note="The word vectors of the paper itself (aquaint+wiki, 50 dimensions) cannot be had; these stand in for them.",
)
QUESTION_SETS: Final = (TRECQA, WIKIQA, GLOVE)


_LOGS: Final = (
    ("Case1-poorperformance/bayes/log.pkl", 93216, "880db6109b11b2574f294c883b50772bf38b8efed643eabb634de2a39c98bc08"),
    ("Case1-poorperformance/dream/log.pkl", 32873, "b525fe725b9ff9cd5603167878f359a05267ed475a36429876d205b956702e5a"),
    (
        "Case1-poorperformance/extract_info.pkl",
        8076,
        "705db73806ed13eb01fcedc5e9e4050ee6fc6c7e74e43b171d25bebf30a51806",
    ),
    ("Case1-poorperformance/greedy/log.pkl", 90585, "9c98d83fe81bf6696cf9e712fc3252fcda4c36b54db1c3dd3ef0b294c922e35e"),
    (
        "Case1-poorperformance/hyperband/log.pkl",
        287253,
        "8149d582814c7ce67ba1a4227cf1e4449311f5ce1eb78efae9567bdf4b5555b7",
    ),
    ("Case1-poorperformance/search_log.pkl", 3361, "f6000c854fec3fe7e0ce218fbab9f86cbfe7798b56f0f584fdc3d114a3267feb"),
    (
        "Case2-ineffectiveSearch/c100_bayesian/log.pkl",
        113910,
        "a78708de0efd289051dde7fe2fe73a7c0d4f6b8a6c4f3cce0bf5a308d3092c9d",
    ),
    (
        "Case2-ineffectiveSearch/c100_dream/log.pkl",
        37601,
        "632c3df937805b6feb8671e7ac3baaa315a2649ae9c23d3e493dfa129276ca71",
    ),
    (
        "Case2-ineffectiveSearch/c100_greedy/log.pkl",
        63737,
        "33aa0452440bbc9d9bae364dffe87fe730df26aaca154bc71fc83a6f63138011",
    ),
    (
        "Case2-ineffectiveSearch/c100_hyperband/log.pkl",
        394641,
        "3830c71ccdd77bcba1645d89ff60c8bccbb031a9c8d9e9ab42c5e44269080daf",
    ),
    (
        "Case2-ineffectiveSearch/search_log.pkl",
        3458,
        "2ce3193f00658d2853897b8bee2bb3402106b69347ae5fe1bbc8b0b453ac8305",
    ),
)
DREAM: Final = Dataset(
    name="dream-search-logs",
    title="logs of eight AutoKeras searches, 800 trials",
    licence="none stated",
    citation="X. Zhang et al. DREAM: AutoML search bugs, monitored and repaired (github shiningrain/DREAM).",
    papers=("dream",),
    files=repository_files(
        "shiningrain/DREAM",
        "b617b6c4337b2fb2217ec0a65d8b8cdb739b62fa",
        "Motivation",
        _LOGS,
    ),
    prepared=(("trials.csv", "epochs.csv.gz", "best_so_far.csv"),),
)
SEARCH_LOGS: Final = (DREAM,)


DATASETS: Final[Mapping[str, Dataset]] = MappingProxyType(
    {entry.name: entry for entry in (*IMAGE_SETS, *FEW_SHOT_SETS, *QUESTION_SETS, *SEARCH_LOGS)}
)


def dataset(name: str) -> Dataset:
    """The data set of that name."""
    if name not in DATASETS:
        raise DataError(f"there is no data set {name!r}", allowed=known_names(name, DATASETS), hint="isorun data list")
    return DATASETS[name]
