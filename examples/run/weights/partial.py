"""Three loads that leave something out, and an answer after each."""

import torch
import transformers

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
torch.manual_seed(0)
config = transformers.BertConfig(
    hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, vocab_size=32
)
transformers.BertModel(config).save_pretrained("base")
ids = torch.tensor([[1, 2, 3]])

classifier = transformers.BertForSequenceClassification.from_pretrained("base")
classifier(ids)

weights = classifier.state_dict()
query = "bert.encoder.layer.0.attention.self.query.weight"
weights[query] = weights[query].to(torch.float8_e4m3fn)
weights[f"{query}_scale"] = torch.ones(1)
torch.save(weights, "float8.pt")
classifier.load_state_dict(torch.load("float8.pt"), strict=False)
classifier(ids)

other = transformers.GPT2Model(
    transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=32)
)
torch.save(other.state_dict(), "gpt2.pt")
model = transformers.BertModel(config)
model.load_state_dict(torch.load("gpt2.pt"), strict=False)
model(ids)
