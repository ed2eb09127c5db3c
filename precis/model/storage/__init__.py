"""Object stores: their clients, and files on them."""
