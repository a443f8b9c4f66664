"""The classic: orders in; income for each day and type of pizza out, exact to the cent."""
