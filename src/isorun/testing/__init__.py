"""For those who write a store, an executor, a source or a paper, and for tests.

memory_store, instant_executor      a store in memory, and an executor that runs nothing
store_contract, executor_contract,  what every member of a family promises, as tests: subclass one, say how yours is
source_contract, paper_contract     made, and pytest runs its promises over it

The contract classes need pytest. Nothing of isorun imports this.
"""

import sys

if "pytest" in sys.modules:
    # Without this a promise that is broken says AssertionError, and not what was found.
    sys.modules["pytest"].register_assert_rewrite(
        *(f"{__name__}.{part}_contract" for part in ("store", "executor", "source", "paper"))
    )
