"""An encoder-decoder trains on pairs of texts: tasks by rule, vocabularies, batches by length, scores, a report."""
