"""What others need to test their own parts: contract classes, and the simplest member of a family.

memory_store, instant_executor    a store in memory and an executor that runs nothing
store_contract, executor_contract what every member of a family promises, as tests: subclass the class and say how
                                  yours is made

It is for tests, and nothing of isorun imports it. pytest is needed for the contract classes.
"""
