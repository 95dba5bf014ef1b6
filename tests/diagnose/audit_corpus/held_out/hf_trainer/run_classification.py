"""Fine-tune a pretrained text model with the Trainer."""

import numpy as np
from datasets import load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer  # open: thread-count
from transformers import Trainer, TrainingArguments


def main():
    dataset = load_dataset("imdb")  # open: data-checksum
    tokenizer = AutoTokenizer.from_pretrained("distilbert-base-uncased")  # open: data-checksum
    encoded = dataset.map(lambda rows: tokenizer(rows["text"], truncation=True), batched=True)
    model = AutoModelForSequenceClassification.from_pretrained(  # open: data-checksum
        "distilbert-base-uncased", num_labels=2
    )
    arguments = TrainingArguments("out", num_train_epochs=1, seed=13)  # open: nondeterministic-kernels

    def accuracy(result):
        logits, labels = result
        return {"accuracy": float((np.argmax(logits, axis=-1) == labels).mean())}

    trainer = Trainer(  # open: late-seed
        model=model,
        args=arguments,
        train_dataset=encoded["train"].shuffle(seed=13).select(range(1000)),
        eval_dataset=encoded["test"],
        processing_class=tokenizer,
        compute_metrics=accuracy,
    )
    trainer.train()


if __name__ == "__main__":
    main()
