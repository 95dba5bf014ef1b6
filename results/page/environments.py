"""Environments that were really made: core libraries (ase20) and versions of a framework (tacl18)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from page.numbers import STORED, conditions, load, p, points, spelled, table, two

_FRAMEWORKS = ("keras", "tensorflow-cpu", "jax", "torch")


def libraries_section() -> Iterator[str]:
    if not (STORED / "ase20-libraries-cpu.json").is_file():
        return
    result = load("ase20-libraries-cpu")
    yield "## ase20: three core libraries below one Keras"
    yield _intro("ase20", "libraries", result)
    rows = [
        (
            item["network"],
            item["level"],
            one["library"],
            str(len(one["values"])),
            points(one["mean"]),
            "–" if one["sd"] is None else two(one["sd"]),
            "–" if one["max_diff"] is None else two(one["max_diff"]),
            "–" if one["different_final_weights"] is None else str(one["different_final_weights"]),
            "–" if item["levene_p"] is None else p(item["levene_p"]),
        )
        for item in result["numbers"]["libraries"]
        for one in item["libraries"]
    ]
    heads = ("network", "level", "library", "runs", "mean (%)", "sd (points)", "largest difference (points)")
    yield table((*heads, "different weights", "Levene p, all libraries"), rows)
    yield from _told(result)


def versions_section() -> Iterator[str]:
    if not (STORED / "tacl18-versions-cpu.json").is_file():
        return
    result = load("tacl18-versions-cpu")
    found = result["numbers"]["versions"]
    asked = {(one["approach"], one["value"]): one for one in found["questions"].get("AP", {}).get("effects", ())}
    yield "## tacl18: versions of a framework as a factor"
    yield _intro("tacl18", "versions", result)
    rows = [_effect(one, asked.get((one["approach"], one["value"]))) for one in found["seeds"]["AP"]["effects"]]
    heads = ("data", "JAX", "against", "AP", "AP, baseline", "difference", "95 % interval", "p, seeds", "p, questions")
    yield table((*heads, "seeds with another AP", "seeds with other weights"), rows)
    yield "Both p are corrected by Holm over the rows of this table."
    yield from _told(result)


def _effect(one: dict[str, Any], asked: dict[str, Any] | None) -> tuple[str, ...]:
    changes, interval = one["changes"], one["interval95"]
    return (
        one["approach"],
        one["value"],
        one["baseline"],
        f"{one['mean']:.4f}",
        f"{one['mean_baseline']:.4f}",
        f"{one['difference']:+.4f}" if one["difference"] else "0",
        f"[{interval[0]:.4f}, {interval[1]:.4f}]" if interval and one["difference"] else "–",
        _corrected(one),
        _corrected(asked),
        f"{changes['values']} of {changes['pairs']}",
        f"{changes['weights_changed']} of {changes['weights']}",
    )


def _corrected(one: dict[str, Any] | None) -> str:
    return "–" if one is None or one["p_corrected"] is None else p(one["p_corrected"])


def _intro(paper: str, part: str, result: dict[str, Any]) -> str:
    first, runs = result["machines"][0], result["runs"]
    versions = (f"{name} {one[name]}" for name in _FRAMEWORKS for one in result["machines"] if name in one)
    stopped = " (the runs were stopped before all were made)" if runs["stopped"] else ""
    return (
        f"`isorun reproduce {paper} --scale {result['scale']} --only {part}`: {runs['finished']} runs, "
        f"{spelled(runs['failed'])} failed{stopped}, in environments that isorun made ({first['cpu']}, Python {first['python']}, {', '.join(dict.fromkeys(versions))}). "
        f"Scaled down: {'; '.join(sentence.rstrip('.') for sentence in result['scaled_down'])}."
    )


def _told(result: dict[str, Any]) -> Iterator[str]:
    yield "\n".join(f"- {line}" for line in result["verdict"])
    if result["warnings"]:
        yield f"Told by the result itself:\n{conditions(result)}"
