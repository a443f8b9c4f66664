"""What the SDK does with the application's own database."""
