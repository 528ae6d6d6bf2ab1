"""The conversation's state in the prompt: tokens of state, marks of turns, and user text that cannot forge them."""
