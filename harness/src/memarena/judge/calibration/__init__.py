"""How far a judge can be trusted: planted answers whose truth is known, and a judge's rates of error on them."""
