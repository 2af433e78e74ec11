"""One update: forward pass, gradients, optimiser, and how far the policy drifts."""
