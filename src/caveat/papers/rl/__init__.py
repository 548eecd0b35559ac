"""Figures 5 and 6 of paper 001: Thompson sampling against epsilon greedy."""
