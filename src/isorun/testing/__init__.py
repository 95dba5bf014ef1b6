"""For those who write a store, an executor or another part, and for tests: contracts, and parts that cost nothing.

The contract classes need pytest: subclass one, say how yours is made, and pytest runs its promises over it.
"""
