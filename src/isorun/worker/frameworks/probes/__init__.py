"""What looks into models while they train, and what reaches their draws, a framework a file; loaded only where asked for."""
