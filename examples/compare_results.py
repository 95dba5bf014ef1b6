"""Results from elsewhere: ten runs of a baseline and ten of a new method."""

import isorun

BASE = [0.912, 0.905, 0.917, 0.909, 0.913, 0.908, 0.915, 0.911, 0.906, 0.914]
NEW = [0.918, 0.913, 0.921, 0.909, 0.922, 0.916, 0.919, 0.915, 0.912, 0.923]


def main() -> None:
    """Compare, decide, and plan."""
    comparison = isorun.compare(NEW, BASE, a="new", b="base")
    print(f"{comparison.verdict} (p = {comparison.mann_whitney.p:.4f}): {comparison.decision.why}")
    print(f"single runs would have said the opposite in {comparison.single_run_reversal:.0%} of pairs")
    decision = isorun.decide(NEW, BASE, direction="higher")
    print(f"looking after every run: {decision.verdict}; {decision.error_statement}")
    print(isorun.power(BASE, difference=0.003).sentence)


if __name__ == "__main__":
    main()
