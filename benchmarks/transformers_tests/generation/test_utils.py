"""The source release leaves this module out: its tests of `generate` do not run."""


class GenerationTesterMixin:
    pass
