"""Programs for interpreters that have a tracker's own package: that and the standard library are all they import."""
