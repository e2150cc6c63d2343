"""What code that follows no contract is: which class is which component, how it is built and called."""
