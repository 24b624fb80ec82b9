"""Where changed code and servers may run, away from the user's files."""
