"""One small file a framework."""
