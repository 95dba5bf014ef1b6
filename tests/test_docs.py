"""The documentation keeps up with the product."""

import argparse
import importlib
import re
from pathlib import Path

import pytest

from isorun.cli import reference
from isorun.cli.main import COMMANDS
from isorun.study.toml import KEYS

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_a_study_file_has_a_heading(key):
    assert f"\n## `{key}`\n" in (DOCS / "study-file.md").read_text()


def test_the_command_line_reference_is_what_the_commands_say():
    written = (DOCS / "command-line.md").read_text()
    assert written == reference.markdown(), "run: python -m isorun.cli.reference > docs/command-line.md"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_help_text(command):
    parser = argparse.ArgumentParser()
    importlib.import_module(f"isorun.cli.{command}").declare(parser)
    assert [action.dest for action in parser._actions if not action.help] == []


def test_links_between_pages_lead_somewhere():
    root = DOCS.parent
    for page in [root / "README.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
