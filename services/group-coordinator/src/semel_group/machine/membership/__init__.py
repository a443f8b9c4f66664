"""Who is in which group, and what each member holds. Pure."""
