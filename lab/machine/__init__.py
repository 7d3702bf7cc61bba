"""What there is to work with: this machine, its tools and processes, and programs built for it."""
