"""What all tests share."""

from hypothesis import settings

# No deadlines: machines are noisy, and a first call may compile C. A failure prints how to repeat
# it; `--hypothesis-seed` takes the seed.
settings.register_profile("closlab", deadline=None, print_blob=True)
settings.load_profile("closlab")
