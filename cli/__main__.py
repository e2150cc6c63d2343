"""`python -m conformkit.cli` is the command `conform`."""

import sys

try:
    from conformkit.cli.main import main

    sys.exit(main())
except KeyboardInterrupt:  # while this module's own imports run
    sys.exit(130)
