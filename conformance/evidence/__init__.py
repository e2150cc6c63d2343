"""What clauses are made of: drawn inputs, comparisons, and measurements that several clauses share."""
