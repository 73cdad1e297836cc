"""An adapter is added to a network whose groups are offloaded already."""
import torch
from diffusers import UNet2DConditionModel
from peft import LoraConfig

unet = UNet2DConditionModel(sample_size=8, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(8, 16), cross_attention_dim=8,
                   down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
                   norm_num_groups=4, attention_head_dim=8)
unet.enable_group_offload(onload_device=torch.device("cuda"), offload_type="leaf_level")
unet.add_adapter(LoraConfig(r=2, target_modules=["to_q", "to_k"]))
with torch.no_grad():
    print(unet(torch.ones(1, 3, 8, 8, device="cuda"), 1, torch.ones(1, 4, 8, device="cuda")).sample.shape)
