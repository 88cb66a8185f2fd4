"""How hypothesis draws its examples: the same ones in every run, unless asked to search."""

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)  # pytest --hypothesis-profile=search
settings.load_profile("same")
