"""A fabric's configurations: read, checked, shown wrong by runs, cured, brought as a scenario."""
