"""Background work of the group coordinator: sessions, retention, inquiries and lag."""
