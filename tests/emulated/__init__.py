"""Other processors, emulated by qemu: `make test-arm` and `make test-old`. Everything lies in build/emulated."""
