"""The cells of the papers' studies keep the ids they always had: records from before are still theirs.

Thread counts and CPU paths depend on the machine, and smoke on the data that are at hand; both are left out, but for
the paper whose smoke data never come with a package.
"""

import hashlib

import pytest

from isorun.study.cells import cells_of
from isorun.zoo.paper import Request
from isorun.zoo.papers import paper

# Study: how many cells, the id of the first, and a hash of all.
GOLDEN = {
    "ase20-cpu-lenet1": (18, "f896ebbbac682b82", "838fc9791839f938"),
    "ase20-cpu-lenet4": (18, "383d5988556464f6", "4db810e94d6e1ad4"),
    "ase20-cpu-lenet5": (18, "483d2b01d04424aa", "14723dee94b23c22"),
    "ase20-cpu-resnet38": (10, "75c01ef37aec6232", "6a8a3edb13786adc"),
    "ase20-cpu-resnet56": (10, "20f36651c69adf8f", "44100e6244e2a7d5"),
    "ase20-cpu-wrn-28-10": (2, "7bc2fd7ad4821265", "a6acb9b6916eed75"),
    "ase20-cpu-fashion-mnist": (24, "9ec1182bf4a5a33c", "990e3ac58cd2a92b"),
    "ase20-cpu-digits": (54, "00fb4fe3214ac37d", "673acdfeb373c174"),
    "ase20-cpu-factors-lenet5": (32, "04c8d390bcc3db7d", "3d78ac04459e2d1d"),
    "ase20-cpu-factors-resnet38": (20, "6944c1f469b70bdf", "0e7ec08d72e4dc5b"),
    "ase20-gpu-lenet1": (24, "7e0b368a729fab91", "a6cfe0536b41090f"),
    "ase20-gpu-lenet4": (24, "f7ca735ada949326", "bed092a5112c262e"),
    "ase20-gpu-lenet5": (24, "0802537afe822f56", "44eaf37de4e58e2e"),
    "ase20-gpu-resnet38": (24, "153e592c40e016be", "12be74ac67468ca8"),
    "ase20-gpu-resnet56": (24, "60e543712e7495a1", "411760870c8c1508"),
    "ase20-gpu-wrn-28-10": (24, "1958ec363c0af3bf", "fd2133d3ac20dbd6"),
    "ase20-gpu-fashion-mnist": (48, "aaf197afc7d9aaac", "88abef7b4f8c813a"),
    "ase20-gpu-digits": (72, "00fb4fe3214ac37d", "1c1bf123aa61dd76"),
    "ase20-gpu-factors-lenet5": (32, "361aa0347e2d5600", "f618aa57a8833e5a"),
    "ase20-gpu-factors-resnet38": (40, "a4911a6e875c66ee", "0aa717f8d75ead2f"),
    "ase20-gpu-factors-wrn-28-10": (30, "3a109518caa69491", "eaea88d82da5ce36"),
    "ase20-gpu-nested": (48, "1e151ad58a18c8af", "5108edc44b5bfe4d"),
    "ase20-gpu-nested-deterministic": (16, "24259e5acd4f7c9c", "a64a5417c4ef705f"),
    "ase20-paper-lenet1": (48, "2eb84e765e070820", "bdee6e8cecb49d2c"),
    "ase20-paper-lenet4": (48, "2fc09504cab44cde", "295659ded80dcdc1"),
    "ase20-paper-lenet5": (48, "24026163a2239658", "7e93c428167ba463"),
    "ase20-paper-resnet38": (48, "73d10b0d1af24ac6", "73519afa073c61fa"),
    "ase20-paper-resnet56": (48, "1107f00d56b002f6", "04eb765752891759"),
    "ase20-paper-wrn-28-10": (48, "f2041a5c0f3a6519", "dbf6d58890d1c608"),
    "ase20-paper-fashion-mnist": (144, "235d9084f995a938", "28cca8b0d16e283e"),
    "ase20-paper-digits": (144, "2bbd69d0062618bf", "f71abb4b43d002b2"),
    "ase20-paper-factors-lenet5": (64, "f7a6cc253c6153a2", "c81c63abbf72573e"),
    "ase20-paper-factors-resnet38": (80, "8f9c46a819baa1fa", "bc1170c851e120d9"),
    "ase20-paper-factors-wrn-28-10": (48, "fe6d0a8418f18922", "0984865b08130524"),
    "ase20-paper-nested": (96, "5cbc7dd592f8d72d", "0103f30c79852406"),
    "ase20-paper-nested-deterministic": (32, "872f699f729f0193", "96c77ffa07d7f504"),
    "tacl18-cpu-baseline": (3, "58a77d3944f7065c", "c0427024ede42eb6"),
    "tacl18-cpu-data": (6, "2d8dfc29dbfc9bc6", "08bb511fa73c8e0f"),
    "tacl18-cpu-devices": (12, "837bcf9f18e363b6", "b714531c0acb6ce8"),
    "tacl18-cpu-seeds": (32, "ea42f7db7417dad2", "b9138c46ee5944a9"),
    "tacl18-cpu-masks": (64, "ebd4160e4d65e10c", "94c243b64ec9c72e"),
    "tacl18-gpu-baseline": (3, "58a77d3944f7065c", "c0427024ede42eb6"),
    "tacl18-gpu-data": (15, "2d8dfc29dbfc9bc6", "7d18d40609b225de"),
    "tacl18-gpu-devices": (12, "837bcf9f18e363b6", "89df40a30a1c41da"),
    "tacl18-gpu-seeds": (400, "ea42f7db7417dad2", "bd6979a5432128a9"),
    "tacl18-gpu-masks": (400, "ebd4160e4d65e10c", "27567909dd08764b"),
    "tacl18-paper-baseline": (3, "58a77d3944f7065c", "c0427024ede42eb6"),
    "tacl18-paper-data": (15, "ba995f125f32f329", "603c48d01e8d83a3"),
    "tacl18-paper-devices": (12, "2378397986296916", "8ed81a08af9e8e29"),
    "tacl18-paper-seeds": (800, "5e3ea64f889070f7", "d2957eb8893b186f"),
    "tacl18-paper-masks": (1600, "f87ea9030db8df2e", "2b4b029ad5fc1ce3"),
    "fewshot-smoke": (24, "655fbfbbe3bf1d04", "04db9b2edfb3eb62"),
    "fewshot-smoke-control": (8, "871c4d010f989f91", "0aed58ce0f5b0858"),
    "fewshot-cpu": (144, "7e1a717c43399e51", "11116116e912bebf"),
    "fewshot-cpu-control": (6, "0749cdb953a0cea8", "a355b1bf07351570"),
    "fewshot-gpu": (216, "8f281f68928fd6b7", "855ada7dfd6464a0"),
    "fewshot-gpu-control": (40, "d14c8a236548409f", "6750a6a6175fa9a0"),
    "fewshot-paper": (1500, "44616de4b1fb56ad", "4e0dda3e3d2e7f18"),
    "fewshot-paper-control": (40, "7f26f0ca7b7c05ad", "3e58fcf1f44f713b"),
}
MACHINES_OWN = ("threads", "cpu-paths", "onednn-off")
SCALES = {
    "ase20": ("cpu", "gpu", "paper"),
    "tacl18": ("cpu", "gpu", "paper"),
    "fewshot": ("smoke", "cpu", "gpu", "paper"),
}


@pytest.mark.parametrize(("name", "scale"), [(name, scale) for name, scales in SCALES.items() for scale in scales])
def test_the_cells_of_a_paper_have_the_ids_they_always_had(name, scale, tmp_path, monkeypatch):
    monkeypatch.setenv("ISORUN_DATA", str(tmp_path / "no-data"))
    studies = paper(name).studies(Request(scale, tmp_path, device="cuda", recorded=True))
    found = {}
    for study in studies:
        if not study.name.endswith(MACHINES_OWN):
            ids = [cell.id for cell in cells_of(study)]
            found[study.name] = (len(ids), ids[0], hashlib.sha256(" ".join(ids).encode()).hexdigest()[:16])
    assert found == {key: value for key, value in GOLDEN.items() if key in found}
    assert len(found) == sum(key.startswith(f"{name}-{scale}") for key in GOLDEN)


def test_a_training_is_started_by_the_module_that_its_records_name(tmp_path):
    studies = [study for name in SCALES for study in paper(name).studies(Request("smoke", tmp_path))]
    started = {tuple(cell.command[:3]) for study in studies for cell in cells_of(study)}
    modules = ("ase20.train", "tacl18.train", "tacl18.idf_run", "fewshot.train")
    assert started == {("python", "-m", f"isorun.zoo.studies.{module}") for module in modules}
