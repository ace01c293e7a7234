"""The webhook's certificates: issued, rotated with overlap, published as a CA bundle."""
