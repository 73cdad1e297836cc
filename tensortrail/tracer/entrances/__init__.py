"""How a recording is asked for: `with tensortrail.trace()`, pytest, a script's command."""
