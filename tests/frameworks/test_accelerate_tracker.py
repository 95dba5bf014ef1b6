"""A real training with accelerate, alone and in two processes."""

import pytest

pytestmark = pytest.mark.slow

TRAINING = """
    import torch
    from accelerate import Accelerator
    from isorun.frameworks.accelerate import IsorunTracker

    accelerator = Accelerator(log_with=IsorunTracker(), cpu=True)
    accelerator.init_trackers("anything", config={"lr": 0.1})
    torch.manual_seed(0)
    drawn = torch.Generator().manual_seed(1)
    x = torch.randn(128, 4, generator=drawn)
    data = torch.utils.data.TensorDataset(x, (x[:, :1] > 0).float())
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(data, 16))
    for epoch in range(3):
        losses = []
        for inputs, targets in loader:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(inputs), targets)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            losses.append(loss.detach())
        mean = accelerator.gather(torch.stack(losses)).mean()
        accelerator.log({"epoch": epoch, "train_loss": mean, "name": "a text"})
        accelerator.print(f"epoch {epoch} train_loss {mean:.4f}")
    accelerator.end_training()
"""


def test_what_a_tracker_is_told_is_a_row_of_its_epoch(trained):
    record = trained(TRAINING, "accelerate")
    assert record.origins == {"train_loss": "log"}
    assert list(record.series["train_loss"].steps) == [0.0, 1.0, 2.0]
    assert "ranks" not in record.environment["effective"]


def test_two_processes_are_one_record_with_both_ranks(trained):
    launch = ("-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes=2", "--main_process_port=0")
    record = trained(TRAINING, "accelerate", launch=(*launch, "--mixed_precision=no", "--dynamo_backend=no"))
    assert len(record.series["train_loss"].values) == 3
    ranks = record.environment["effective"]["ranks"]
    assert (ranks["world_size"], ranks["backend"]) == (2, "gloo")
    assert [one["rank"] for one in ranks["each"]] == [0, 1]
    assert "weights.final" in record.digests
