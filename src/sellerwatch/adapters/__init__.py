"""How: one technology per file or folder. An adapter keeps a port's promise, decides nothing and calls no other adapter."""
