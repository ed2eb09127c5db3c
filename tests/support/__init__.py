"""What several tests share: reference networks, small models, runs of commands."""
