"""Which memory setting each framework has, which framework runs in a container, and what a pod says already."""
