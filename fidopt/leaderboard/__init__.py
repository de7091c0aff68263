"""Leaderboards: rows summed up a line a method, ranked, and honest about what the cases cannot tell apart."""
