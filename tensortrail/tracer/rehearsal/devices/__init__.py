"""The simulated devices: which there are, their memory, and what torch.cuda says of them."""
