"""Table 1 of paper 001: nine regression sets, four protocols."""
