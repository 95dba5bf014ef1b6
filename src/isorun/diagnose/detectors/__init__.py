"""Detectors of training problems, one problem a file, by its name; docs/doctor.md explains them to users."""
