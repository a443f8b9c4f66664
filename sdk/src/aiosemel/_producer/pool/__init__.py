"""The pool of transactional producers."""
