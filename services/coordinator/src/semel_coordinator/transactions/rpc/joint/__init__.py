"""The RPCs of joint transactions."""
