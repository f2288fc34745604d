"""PyFlink's `datastream.formats`: schemas, readers and writers of formats, one module each."""
