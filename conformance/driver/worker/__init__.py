"""The process in which the implementation runs. Nothing here knows a clause or an expected value."""
