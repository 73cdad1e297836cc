"""What is known of libraries by the names of their functions, classes and models."""
