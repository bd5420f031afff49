"""What people and programs see of a comparison: terminal, page, files."""
