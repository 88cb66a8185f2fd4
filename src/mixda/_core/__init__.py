"""Types, validation, errors, files, progress and threads; independent of mixtures."""
