import torch


def answer(model, prompt, device):
    batch = torch.as_tensor(prompt)
    batch.to(device)
    return model(batch)


def on_gpu(tensor):
    return tensor.device == "cuda"
