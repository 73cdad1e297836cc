"""How anything of somebody else's is wrapped, and put back as it was."""
