"""Pack files: reading them strictly, the shape of what they hold, laying one over another."""
