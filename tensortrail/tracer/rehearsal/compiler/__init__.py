"""torch.compile in a rehearsal."""
