"""The failure of one clause as a script that needs nothing of the kit: the user's own code, one call, got and want."""
