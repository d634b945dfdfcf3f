"""What the tables hold for a corpus of logs, kept as digests, so that a rebuilt pipeline is seen to change no value."""
