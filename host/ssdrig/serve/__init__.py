"""`ssdrig serve`: the bench in the browser. A process of its own, without rights, that follows run folders and nothing
else: what runs now, the archive of runs, the drives. A run does not notice it."""
