"""Deep Q-learning with networks drawn from the posterior."""
