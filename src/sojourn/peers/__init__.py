"""Other machines: how they are reached, how each side proves who it is, what they say."""
