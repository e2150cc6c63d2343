"""Isolation `sandbox`: namespaces, control groups and system-call filters around a warm process."""
