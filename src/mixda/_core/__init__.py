"""Arrays, errors, files, progress and threads: what knows nothing of mixtures."""
