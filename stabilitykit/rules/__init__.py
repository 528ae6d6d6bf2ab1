"""The rule language: strict YAML with positions, a typed condition language, and packs checked as a whole."""
