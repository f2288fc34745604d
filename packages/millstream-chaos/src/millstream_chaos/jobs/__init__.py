"""The jobs that cases run, and their driver processes."""
