"""Section 4.2 of paper 000: dropout after every layer of a convnet needs averages."""
