"""MC dropout against ensembles of networks (paper 000, section 4.2)."""
