"""What an implementation declares: what keeps clauses from being judged, what it is excused for, what it leaves out."""
