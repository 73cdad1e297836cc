"""A model that lies on the CPU and on disk generates and is saved"""
import tempfile
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, vocab_size=32)
with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as offload, tempfile.TemporaryDirectory() as out:
    LlamaForCausalLM(config).save_pretrained(folder)
    places = {"model.embed_tokens": "cpu", "model.layers.0": "cpu", "model.layers.1": "disk", "model.norm": "cpu", "model.rotary_emb": "cpu", "lm_head": "disk"}
    model = LlamaForCausalLM.from_pretrained(folder, device_map=places, offload_folder=offload).eval()
    print(model.generate(torch.arange(4)[None], max_new_tokens=4, do_sample=False, pad_token_id=0, eos_token_id=None).tolist())
    model.save_pretrained(out)
    again = LlamaForCausalLM.from_pretrained(out)
    print(again.lm_head.weight.shape, again(torch.arange(4)[None]).logits.shape)
