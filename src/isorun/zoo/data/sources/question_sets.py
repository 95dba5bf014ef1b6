"""Answer selection: TrecQA and WikiQA as tokenised by the authors of SentLevel CNN, and the GloVe word vectors."""

from __future__ import annotations

from typing import Final

from isorun.zoo.data.dataset import Checksum, Dataset, RemoteFile
from isorun.zoo.data.sources.repositories import repository_files

__all__ = ["QUESTION_SETS"]

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
