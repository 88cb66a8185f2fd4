"""Where torch is not installed, everything but the deep methods is tested."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/mixda/deep/*"]
