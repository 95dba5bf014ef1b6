"""Digits by a small random forest: seconds a run, so that CI can afford ten of them."""

import argparse

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import isorun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=20)
    options = parser.parse_args()
    images, digits = load_digits(return_X_y=True)
    train, test, train_digits, test_digits = train_test_split(images, digits, test_size=0.3, stratify=digits)
    forest = RandomForestClassifier(options.trees).fit(train, train_digits)
    isorun.result(test_acc=float(forest.score(test, test_digits)))


if __name__ == "__main__":
    main()
