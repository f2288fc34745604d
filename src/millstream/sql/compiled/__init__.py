"""Plans that outlive a program: who each operator is, and how a plan is written down and read again."""
