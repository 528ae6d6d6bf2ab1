"""What to do about it: actions as data, conflicts resolved."""
