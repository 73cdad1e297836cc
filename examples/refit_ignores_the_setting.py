"""compile() asks `offload_module_to_cpu`; refit() moves the user's model all the same."""

from torch_tensorrt.dynamo import refit_module_weights
from torch_tensorrt.dynamo.utils import deallocate_module


class Runner:
    def __init__(self, model, program, **settings):
        self.model = model
        self.program = program
        self.settings = settings

    def compile(self, build):
        self.engine = build(self.program, **self.settings)
        if self.settings.get("offload_module_to_cpu", False):
            deallocate_module(self.model)

    def refit(self):
        self.engine = refit_module_weights(self.engine, self.program)
        deallocate_module(self.model)
