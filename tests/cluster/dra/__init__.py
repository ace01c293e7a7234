"""The overlay for DRA: a package, so that pytest takes the overlay away before the other tests begin."""
