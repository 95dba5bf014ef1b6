"""Published logs of AutoML searches, as tables or as the authors left them."""
