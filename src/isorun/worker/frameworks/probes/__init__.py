"""What looks into models while they train, or reaches their draws, a framework a file; loaded only where asked for."""
