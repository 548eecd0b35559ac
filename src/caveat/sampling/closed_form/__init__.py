"""Moments without sampling: exact where they can be, else an approximation."""
