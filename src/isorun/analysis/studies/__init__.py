"""What a study's records say: from runs to the result that every report shows."""
