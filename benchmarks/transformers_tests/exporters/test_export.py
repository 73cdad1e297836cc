"""The source release leaves this module out: its tests of exports do not run."""


class ExportTesterMixin:
    pass
