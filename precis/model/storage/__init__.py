"""Object stores: their clients, and the files in them."""
