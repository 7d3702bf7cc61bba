"""The lab: scenarios, the capsule they run in, results, and the command line."""
