"""Parts that producers, consumers and the admin client share."""
