"""Tests, a folder for each part of the compiler."""
