"""The pattern automaton of CEP and MATCH_RECOGNIZE: conditions, compile, buffer, match."""
