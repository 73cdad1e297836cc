"""Files that are loaded onto a device that is not here, or not the one of this process."""
