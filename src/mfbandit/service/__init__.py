"""The same experiments over HTTP: a FastAPI application over a store."""
