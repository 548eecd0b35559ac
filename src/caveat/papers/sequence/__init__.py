"""LSTMs with one mask per sequence (paper 000, section 4.2)."""
