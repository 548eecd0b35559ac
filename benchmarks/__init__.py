"""How fast, how lean and how right Caveat is, beside the loop everyone writes."""
