"""The nouns everything else speaks in: status, dtype, format, product, tensor, tolerance."""
