"""The command `conform`: one file a subcommand, which parses, calls and prints."""
