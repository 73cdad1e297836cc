import torch


def restore(model, path):
    weights = torch.load(path)
    model.load_state_dict(weights)
    return model


def on_gpu(tensor):
    return tensor.device == "cuda"
