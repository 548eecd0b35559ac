"""Figure 2 of paper 002: praise or complaint, with and without dropout."""
