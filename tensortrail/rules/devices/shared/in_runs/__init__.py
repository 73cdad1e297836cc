"""What recorded runs show: errors about devices, and what was refused."""
