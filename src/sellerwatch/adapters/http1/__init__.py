"""HTTP/1.1 out, as lean as a crawl needs it: one origin, kept connections, one request at a time on each."""
