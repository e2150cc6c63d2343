"""Measurements on components that several tests share."""
