"""Why a result is wrong: where the misses are, and which known mistake explains them."""
