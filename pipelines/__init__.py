"""The stages, one a module, each a plain function over records; the command line joins them."""
