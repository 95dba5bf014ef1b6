"""`python -m isorun` is `isorun`."""

import sys

from isorun.cli.main import main

sys.exit(main())
