"""After the first day: compare new rows with those a model was adapted to, and adapt further."""

from mixda.monitoring._drift import Change, Drift
from mixda.monitoring._monitor import monitor
from mixda.monitoring._update import update

__all__ = ["Change", "Drift", "monitor", "update"]
