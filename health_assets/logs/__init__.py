"""Raw logs: finding the files, reading their lines, and turning lines into typed records or reasons for rejection."""
