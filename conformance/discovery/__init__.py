"""What somebody's code is, found without a file: definitions, how to build and call them, what each one computes."""
