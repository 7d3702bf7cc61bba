"""What is shown of runs (private, as all but `closlab.py` is): pages, the live page, the site."""
