"""Three ways in which saving an offloaded model goes wrong."""

import os


def save(model, folder, names_to_keep):
    state_dict = model.state_dict()
    state_dict = revert_weight_conversion(model, state_dict)
    for file in os.listdir(folder):
        if file not in names_to_keep:
            os.remove(os.path.join(folder, file))
    for name, tensor in state_dict.items():
        if tensor.device.type == "meta":
            tensor = load_offloaded_parameter(model, name)
        write(folder, name, tensor)


def save_in_shards(model, split, weight_map):
    for file, names in split.filename_to_tensors.items():
        shard_state_dict = {name: load_offloaded_parameter(model, name) for name in names}
        try:
            shard_state_dict = revert_weight_conversion(model, shard_state_dict)
            weight_map.update({name: file} for name in shard_state_dict)
        except Exception:
            raise RuntimeError("could not revert: try a smaller max_shard_size")
        save_file(shard_state_dict, file)
