"""From a request to verdicts: load the implementation, judge clause after clause, collect the results."""
