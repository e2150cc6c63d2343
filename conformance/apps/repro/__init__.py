"""The failure of one clause as a script without the kit: the user's own code, one call, got and want."""
