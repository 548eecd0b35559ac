"""The world of paper 001, section 5.4: walls, food, poison and nine eyes."""
