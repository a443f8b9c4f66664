"""The application's own database, on each layer and each kind of database."""
