"""Beam transforms and a model handler for other programs (`beam_transforms`)."""
