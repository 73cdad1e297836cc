"""A save that cuts weights apart which belong together: what it writes does not load."""

import transformers

sizes = dict(hidden_size=64, intermediate_size=128, num_attention_heads=2, vocab_size=64)
config = transformers.NomicBertConfig(num_hidden_layers=3, **sizes)
transformers.NomicBertModel(config).save_pretrained("source")

model = transformers.NomicBertModel.from_pretrained(
    "source", device_map={"": "disk"}, offload_folder="offload"
)
model.save_pretrained("again", max_shard_size="100KB")
transformers.NomicBertModel.from_pretrained("again")
