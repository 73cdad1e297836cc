import torch


def restore(model, path, device):
    weights = torch.load(path)
    model.load_state_dict(weights)
    return model.to(device)


def on_gpu(tensor):
    return tensor.device == "cuda"
