"""What a drive counts: asking it, decoding its answers, checking that they are plausible."""
