"""Source that a traceback shows is not read; what others print in between and behind it is."""

import pytest

from isorun.sources.lines import scan_text

PYTHON = """\
Traceback (most recent call last):
  File "/x/train.py", line 3, in <module>
    print("val_acc: 0.5")
    ~~~~~^^^^^^^^^^^^^^^^
  File "/x/train.py", line 9, in f
    log(
    ~~~^
        "val_acc: 0.25", 1/0)
        ^^^^^^^^^^^^^^^^^^^^^
ValueError: no
"""

IN_COLOURS = """\
Traceback (most recent call last):
  File \x1b[35m"/x/train.py"\x1b[0m, line \x1b[35m3\x1b[0m, in \x1b[35m<module>\x1b[0m
    \x1b[31mprint\x1b[0m\x1b[1;31m("val_acc: 0.5")\x1b[0m
    \x1b[31m~~~~~\x1b[0m\x1b[1;31m^^^^^^^^^^^^^^^^\x1b[0m
\x1b[1;35mValueError\x1b[0m: \x1b[35mno\x1b[0m
"""

GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "/x/train.py", line 3, in <module>
  |     print("val_acc: 0.5")
  | ExceptionGroup: two (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/x/train.py", line 4, in f
    |     print("val_acc: 0.25", 1/0)
    | ZeroDivisionError: division by zero
    +------------------------------------
"""

OF_A_PROCESS = """\
(train pid=71) Traceback (most recent call last):
(train pid=71)   File "/x/train.py", line 3, in <module>
(train pid=71)     print("val_acc: 0.5")
(train pid=71) ValueError: no
"""

NOTEBOOK = """\
---------------------------------------------------------------------------
\x1b[0;31mZeroDivisionError\x1b[0m                         Traceback (most recent call last)
Cell \x1b[0;32mIn[3], line 12\x1b[0m
\x1b[1;32m     10\x1b[0m model.fit(X)
\x1b[1;32m     11\x1b[0m best_loss = 0.25
\x1b[0;32m---> 12\x1b[0m print("val_acc: 0.5")
\x1b[1;32m     13\x1b[0m print("f1: 0.25")

File ~/x/train.py:101, in evaluate(model)
     99 def evaluate(model):
    100     best_loss = 0.25
--> 101     print("loss: 0.3", 1/0)

ZeroDivisionError: division by zero
"""

RICH = """\
╭───────────────────── Traceback (most recent call last) ──────────────────────╮
│ /x/train.py:5 in <module>                                                    │
│                                                                              │
│   4 def f():                                                                 │
│ ❱ 5     print("val_acc: 0.5", 1/0)                                           │
│   6     print("auc: 0.25")                                                   │
╰──────────────────────────────────────────────────────────────────────────────╯
ZeroDivisionError: division by zero
"""

RICH_IN_COLOURS = RICH.replace("Traceback (", "\x1b[31mTraceback \x1b[0m\x1b[1;31m(").replace("│", "\x1b[31m│\x1b[0m")

LOGURU = """\
Traceback (most recent call last):

> File "/x/train.py", line 3, in <module>
    print("val_acc: 0.5", best)
          │               └ {'val_acc': 0.25}
ValueError: no
"""


@pytest.mark.parametrize(
    "traceback", [PYTHON, IN_COLOURS, GROUP, OF_A_PROCESS, NOTEBOOK, RICH, RICH_IN_COLOURS, LOGURU]
)
def test_a_metric_in_source_that_a_traceback_shows_is_not_read(traceback):
    found = scan_text(f"epoch 1 val_acc: 0.7\n{traceback}epoch 2 val_acc: 0.8\n")
    assert {name: series.values.tolist() for name, series in found.series.items()} == {"val_acc": [0.7, 0.8]}


def test_what_other_threads_print_between_the_lines_of_a_traceback_is_read():
    lines = [
        "epoch 1 val_acc: 0.1",
        "Traceback (most recent call last):",
        "epoch 2 val_acc: 0.2",
        '  File "/x/train.py", line 3, in <module>',
        "epoch 3 val_acc: 0.3",
        "    test_loss: 0.4",
        '    print("val_acc: 0.9")',
        "epoch 4 val_acc: 0.4",
        '  File "<string>", line 3, in <module>',
        "    test_loss: 0.5",
        "epoch 5 val_acc: 0.5",
        '  File "/x/train.py", line 8, in g',
        '    log("f1: 0.9")',
        "    test_loss: 0.6",
    ]
    found = scan_text("\n".join(lines))
    assert {name: list(series.values) for name, series in found.series.items()} == {
        "val_acc": [0.1, 0.2, 0.3, 0.4, 0.5],
        "test_loss": [0.4, 0.5, 0.6],
    }


def test_a_notebooks_traceback_ends_with_its_error():
    rows = "      3 loss: 0.25\n      4 loss: 0.2\n"
    assert list(scan_text(NOTEBOOK + rows).series["loss"].values) == [0.25, 0.2]
