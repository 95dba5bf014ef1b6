"""Report: terminal, HTML, Markdown, LaTeX, JSON and figures over result objects; no statistics in here."""
