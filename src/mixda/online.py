"""Mixtures that grow with a stream; the functions live in `mixda.barycenters`."""

from mixda.barycenters import merge_mixtures

__all__ = ["merge_mixtures"]
