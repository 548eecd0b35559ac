"""One thread for each test process: the models are small, and there are two."""

import torch

torch.set_num_threads(1)
