"""The hooks that come with the factory. Each is the class of its type in the module of that name."""
