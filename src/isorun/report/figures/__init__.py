"""Figures: one description, drawn as SVG by ourselves or by matplotlib."""
