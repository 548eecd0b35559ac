"""Small, fast, awkward models, and the plain loop they are measured against."""
