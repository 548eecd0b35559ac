"""What reproductions of series share: nets, Gaussian processes, points, panels."""
