"""Pages of the site that are made from the package itself."""
