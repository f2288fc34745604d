"""The cases of `millstream chaos`: one module for each."""
