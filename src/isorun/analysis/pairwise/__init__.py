"""Two approaches: every test, effect and interval."""
