"""The switch: BMv2 JSON turned into native code, its run-time, and the P4Runtime server on top."""
