"""What the subcommands of `conform` do besides a run, one folder an app, each with its own output formats."""
