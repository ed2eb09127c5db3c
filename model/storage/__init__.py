"""Object stores: clients, requests that are repeated, and files on them."""
