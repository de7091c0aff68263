"""One thin file a command: arguments, one call, and what is printed."""
