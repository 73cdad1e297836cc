"""The compiled module runs on the GPU; the embedding of the original may be on the CPU by then."""

import torch_tensorrt


def generate(language_model, ids, settings):
    compiled = torch_tensorrt.MutableTorchTensorRTModule(language_model, **settings)
    embeddings = language_model.get_input_embeddings()(ids)
    return compiled(inputs_embeds=embeddings)
