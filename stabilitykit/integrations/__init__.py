"""What plugs the engine into other packages, one module for each; none is imported by the library itself."""
