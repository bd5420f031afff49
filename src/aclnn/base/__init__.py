"""The nouns everything else speaks in: status, dtype, format, device, tensor, tolerance."""
