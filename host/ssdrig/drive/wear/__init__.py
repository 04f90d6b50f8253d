"""What the counters mean for a drive's life: write amplification, endurance, warranty, retention."""
