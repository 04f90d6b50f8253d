"""`ssdrig serve`: the bench in the browser. An unprivileged process that only follows run folders: the current run, the
archive of runs, the drives. It does not affect a run."""
