"""The one compiled pass: how a pack is laid out, and what runs over it on every turn."""
