"""Beam transforms for other programs (`beam_transforms`)."""
