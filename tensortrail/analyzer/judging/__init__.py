"""The check of files, from paths to findings.

`engine` goes over the files and the cache, `judge` over the rules for one file, and `module` is
what such a rule asks."""
