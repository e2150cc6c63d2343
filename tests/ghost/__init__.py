"""What `tox -e gpu` runs on a GPU, on a device that exists in name only."""
