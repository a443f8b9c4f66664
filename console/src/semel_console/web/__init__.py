"""The console as a web application: requests, sessions, security."""
