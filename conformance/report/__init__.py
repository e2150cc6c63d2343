"""What a run found, for people (terminal) and for machines (JSON, JUnit)."""
