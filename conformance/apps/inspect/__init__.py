"""What happens inside an implementation: `conform inspect`."""
