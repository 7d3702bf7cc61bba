"""What is shown of runs: pages, figures, the live page, the site; they read what is kept."""
