"""The SDK's work with the application's own database."""
