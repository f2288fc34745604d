"""Complex event processing: patterns over streams of events. The public names are in `millstream.cep`."""
