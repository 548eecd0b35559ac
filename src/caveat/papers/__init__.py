"""The figures and tables of the papers, rerun: what ``caveat reproduce`` calls."""
