"""Parts that isorun finds by entry point."""
