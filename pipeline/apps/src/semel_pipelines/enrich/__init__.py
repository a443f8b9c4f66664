"""Orders joined with the menu, for the books and for the kitchen, at once."""
