"""What the hooks of several libraries have in common; no hook lies here."""
