"""What others say of a package: roc-validator of its RO-Crate metadata, CycloneDX's own library of its list of parts.

Both need environments of their own: ISORUN_VALIDATORS names a Python that has roc-validator and
cyclonedx-python-lib[json-validation], with the context of RO-Crate in its cache (`rocrate-validator cache warm`).
"""

import os
import subprocess
from pathlib import Path

import pytest
from recorded_study import recorded_study

from isorun.packages.reading import open_package
from isorun.share.packing import pack

PYTHON = os.environ.get("ISORUN_VALIDATORS", "")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PYTHON, reason="ISORUN_VALIDATORS names no Python with them")]
CYCLONEDX = (
    "import sys; from cyclonedx.schema import SchemaVersion; from cyclonedx.validation.json import JsonStrictValidator;"
    "print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read()))"
)


@pytest.fixture
def package(tmp_path):
    pack(recorded_study(tmp_path), tmp_path / "digits.isorun", license_id="CC-BY-4.0")
    return tmp_path / "digits.isorun"


def test_roc_validator_takes_a_package_as_it_is(package):
    copy = package.with_suffix(".zip")
    copy.write_bytes(package.read_bytes())
    command = [Path(PYTHON).with_name("rocrate-validator"), "-y", "validate", "--offline", "--no-paging", copy]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "is a valid ro-crate-1.1" in " ".join(done.stdout.split())


def test_the_list_of_parts_fits_the_schema_of_cyclonedx(package):
    with open_package(package) as opened:
        text = opened.content("sbom.cdx.json").decode()
    asked = [PYTHON, "-c", CYCLONEDX]
    assert subprocess.run(asked, input=text, capture_output=True, text=True, check=True).stdout == "None\n"
    broken = text.replace('"library"', '"no-such-kind"')
    assert subprocess.run(asked, input=broken, capture_output=True, text=True, check=True).stdout != "None\n"
