"""`python -m conformkit.cli` is the command `conform`."""

import sys

from conformkit.cli.main import main

sys.exit(main())
