"""A classifier is loaded with another number of labels."""
import tempfile

from transformers import BertConfig, BertForSequenceClassification

small = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=30)
folder = tempfile.mkdtemp()
BertForSequenceClassification(BertConfig(num_labels=2, **small)).save_pretrained(folder)
again = BertForSequenceClassification.from_pretrained(folder, num_labels=5)
print(again.classifier.weight.shape)
