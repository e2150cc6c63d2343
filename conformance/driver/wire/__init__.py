"""What the two halves of the driver say to each other: frames, arrays, values, texts."""
