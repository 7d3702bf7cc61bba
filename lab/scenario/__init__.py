"""What may be said, and what follows from it before anything runs."""
