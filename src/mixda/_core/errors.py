"""The exceptions and warnings that mixda raises on purpose."""

from __future__ import annotations


class MixdaError(ValueError):
    """Invalid input. The message says what was given, what is accepted, and what to do.

    The command line prints the message and exits with code 2. Any other exception is a bug.

    Examples
    --------
    >>> import mixda
    >>> try:
    ...     mixda.Mixture(weights=[2.0], means=[[0.0]], stds=[[1.0]])
    ... except mixda.MixdaError as error:
    ...     print(str(error)[:40])
    weights must be non-negative and sum to
    """


class NoTargetWarning(UserWarning):
    """A fit without `sample_domain`: all rows are one source, and nothing is adapted.

    Silence it with ``warnings.simplefilter("ignore", mixda.NoTargetWarning)``.
    """


NoTargetWarning.__module__ = "mixda"
MixdaError.__module__ = "mixda"  # its public name, also in tracebacks
