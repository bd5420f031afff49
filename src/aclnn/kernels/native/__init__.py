"""Native code: compiled, kept on disk, called by address, launched on threads."""
