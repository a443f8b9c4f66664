"""Why calls to an address fail, in sentences for users and logs."""
