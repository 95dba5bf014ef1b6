"""For those who write a part of their own, and for tests.

memory_store, instant_executor      a store in memory, and an executor that runs nothing
store_contract, executor_contract,  what every member of a family promises, as tests: subclass one, say how yours is
environment_contract,               made, and pytest runs its promises over it
source_contract, paper_contract,
detector_contract, engine_contract

The contract classes need pytest. Nothing of isorun imports this.
"""

import sys
from pathlib import Path

if "pytest" in sys.modules:
    # Without this a promise that is broken says AssertionError, and not what was found.
    sys.modules["pytest"].register_assert_rewrite(
        *(f"{__name__}.{path.stem}" for path in sorted(Path(__file__).parent.glob("*_contract.py")))
    )
