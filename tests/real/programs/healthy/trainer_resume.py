"""Trainer writes a checkpoint and a second one resumes from it"""
import tempfile
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PrinterCallback, Trainer, TrainingArguments, set_seed

def trainer(folder, steps):
    set_seed(0)
    config = LlamaConfig(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, vocab_size=32)
    data = [{"input_ids": torch.arange(8) + n, "labels": torch.arange(8) + n} for n in range(16)]
    settings = TrainingArguments(folder, max_steps=steps, save_steps=2, per_device_train_batch_size=2, report_to=[], use_cpu=True, logging_steps=2, disable_tqdm=True)
    made = Trainer(LlamaForCausalLM(config), settings, train_dataset=data)
    made.remove_callback(PrinterCallback)  # it prints how long the training took
    return made

with tempfile.TemporaryDirectory() as folder:
    trainer(folder, 2).train()
    resumed = trainer(folder, 4)
    resumed.train(resume_from_checkpoint=True)
    print(resumed.state.global_step, [round(each["loss"], 4) for each in resumed.state.log_history if "loss" in each])
