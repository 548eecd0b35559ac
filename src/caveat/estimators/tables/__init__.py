"""What the estimators do by themselves with a table: candidates, pooled."""
