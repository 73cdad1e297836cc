"""Fixes of torchtune that a test on a CPU does not show."""

import pytest
import torch
from bare_packages import stand_for
from torch import nn

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"
stand_for(["torchtune", "torchtune.training"], ["kagglehub", "sentencepiece", "tiktoken"])


@pytest.mark.fix("7747db134")
def test_tokens_of_the_gpu_are_embedded():
    from torchtune.modules.model_fusion import EarlyFusionModel

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tok_embeddings = nn.Embedding(8, 4)

        def forward(self, tokens, *, input_embeds=None, **others):
            return input_embeds

    model = EarlyFusionModel(
        decoder=Decoder(), encoders={"image": nn.Linear(4, 4)}, encoder_tokens={"image": 7},
        encoders_trainable=False,
    ).to(GPU)  # fmt: skip
    with torch.no_grad():
        out = model._decoder_embed(torch.tensor([[1, 2, 3]], device=GPU))[0]
    assert out.device == torch.device(GPU)


@pytest.mark.fix("bc4acc19f")
def test_gradients_of_the_cpu_are_scaled_with_a_number_of_the_gpu():
    from torchtune.training._grad_scaler import scale_grads

    layer = nn.Linear(2, 2)
    layer(torch.ones(1, 2)).sum().backward()
    scale_grads(layer, torch.tensor([2.0], device=GPU).squeeze())
    assert (layer.weight.grad == 2).all()
