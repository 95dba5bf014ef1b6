"""What others need to test a store or an executor of their own: contract classes, and the simplest member of a family.

It is for tests, and nothing of isorun imports it.
"""
