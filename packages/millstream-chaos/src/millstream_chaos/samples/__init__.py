"""Small programs, their input, and the output that plain Python computes."""
