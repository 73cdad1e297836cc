"""A weight of a model that is offloaded in groups, used past its hook."""

import diffusers
import torch

torch.manual_seed(0)
vae = diffusers.AutoencoderKL(block_out_channels=(32,), norm_num_groups=8)
vae.enable_group_offload(torch.device("cuda"), offload_type="leaf_level", use_stream=True)
latents = torch.randn(1, 4, 16, 16, device="cuda")
with torch.no_grad():
    vae.decode(latents)
    torch.nn.functional.conv2d(latents, vae.post_quant_conv.weight)
