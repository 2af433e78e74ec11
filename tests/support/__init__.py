"""Fixtures and data that several test files share."""
