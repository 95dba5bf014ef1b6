"""For all tests: this folder is importable (record_builder), and hypothesis never fails for a slow machine."""

from hypothesis import settings

settings.register_profile("isorun", deadline=None, print_blob=True)
settings.load_profile("isorun")
