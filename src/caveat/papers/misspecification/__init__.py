"""Figure 1b of paper 002: ridge and dropout when the model is wrong."""
