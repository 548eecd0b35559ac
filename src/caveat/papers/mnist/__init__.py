"""Figure 4 of paper 001: softmax inputs and outputs of a LeNet for a turning digit."""
