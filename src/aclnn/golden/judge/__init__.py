"""Is a result right: what it must be, how far it is from that, what standards and our own bound say."""
