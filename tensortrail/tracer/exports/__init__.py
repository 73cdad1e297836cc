"""A recorded run for people and other programs: text, a page, tables, one file a format."""
