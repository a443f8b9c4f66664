"""Trace contexts and the export of spans by OpenTelemetry."""
