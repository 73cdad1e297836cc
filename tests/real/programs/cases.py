"""Programs that fail as real ones do: how each is traced, and what its user needs to read."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import warm

HERE = Path(__file__).parent / "failing"
LIMIT = 300


@dataclass(frozen=True)
class Case:
    name: str
    words: tuple[str, ...]
    """What must stand on the terminal when the run ends."""
    rehearse: str = ""
    arguments: tuple[str, ...] = ()
    patched: bool = True
    """A patch is offered, and the program runs to its end with it."""
    needs: tuple[str, ...] = ("torch",)
    quick: bool = False

    @property
    def is_tests(self) -> bool:
        """It is run by pytest."""
        return self.name.startswith("test_")


CASES = (
    Case("a1_cpu_offload_param",
         ("OFF105", "a1_cpu_offload_param.py:12", "embed_tokens.weight", "which is on meta",
          "a1_cpu_offload_param.py:13", "lm_head.weight", "while model.lm_head itself is called"),
         needs=("accelerate", "transformers")),
    Case("a2_disk_offload_sub",
         ("OFF105", "query.weight", "AlignDevicesHook", "its values are in", ".dat"),
         needs=("accelerate", "transformers")),
    Case("b_tied_map",
         ("OFF104", "transformer.wte.weight", "tied to lm_head.weight",
          "the cause is OFF104 at b_tied_map.py:10"),
         rehearse="cuda:2", needs=("accelerate", "transformers")),
    Case("c_meta_to_cuda",
         ("DEV507", "nothing to copy", "embed_tokens.weight", "c_meta_to_cuda.py:9", "to_empty"),
         rehearse="cuda", arguments=("cuda",), patched=False, needs=("transformers",)),
    Case("d_init_empty_forgot",
         ("SHD405", "down_proj.weight", "the state dict loaded at d_init_empty_forgot.py:13 lacks"),
         patched=False, needs=("accelerate", "transformers")),
    Case("d2_torchsave_meta",
         ("SHD405", "head.bias", "d2_torchsave_meta.py:20",
          "the state dict loaded at d2_torchsave_meta.py:18 lacks it"), patched=False),
    Case("e_assign_cpu",
         ("DEV502", "load_state_dict(assign=True)` at e_assign_cpu.py:28", "drop `assign=True`",
          "read there by `torch.load` at e_assign_cpu.py:27"), rehearse="cuda"),
    Case("f_plain_buffer",
         ("OFF107", "pos.pe", "neither a parameter nor a buffer", "f_plain_buffer.py:29"),
         rehearse="cuda", quick=True),
    Case("g_opt_before_cuda",
         ("DEV502", "the state of `Adam` was made on cpu at g_opt_before_cuda.py:10",
          "g_opt_before_cuda.py:11"), rehearse="cuda"),
    Case("g2_opt_loaded",
         ("DEV502", "exp_avg of fresh.0.weight", "the state of `AdamW` was read onto cpu",
          "before the model was moved to cuda:0 at g2_opt_loaded.py:34",
          "opt.load_state_dict(opt.state_dict())"), rehearse="cuda"),
    Case("h_loader",
         ("DEV502", "the batch came out of the DataLoader at h_loader.py:19", "move the batch"),
         rehearse="cuda"),
    Case("i_lora_cpu",
         ("DEV502", "lora_A.default.weight", "was moved cuda:0 -> cpu by `Tensor.to`",
          "i_lora_cpu.py:12"),
         rehearse="cuda", patched=False, needs=("peft", "transformers")),
    Case("j_group_offload",
         ("OFF105", "conv_in.weight", "GroupOffloadingHook",
          "only while unet itself is called"),
         rehearse="cuda", patched=False, needs=("diffusers",)),
    Case("k_compile_mixed",
         ("DEV502", "`mask` is made on the CPU at k_compile_mixed.py:11", "given no device"),
         rehearse="cuda"),
    Case("m2_oom",
         ("OFF113", "8.00 MiB on cuda:0", "the list `history` grows by 8.00 MiB each step",
          "m2_oom.py:15 in LM.forward", "optimizer state", "kept for backward",
          "put `.detach().cpu()` of it into the list `history`"), rehearse="cuda:1x192MiB"),
    Case("o2_worker",
         ("DEV516", "o2_worker.py:7", "in a forked process"), rehearse="cuda"),
    Case("p_context",
         ("DEV502", "recorded into the run that is on", "p_context.py:8", "`x` is on cuda:1",
          "by `Tensor.cuda` at p_context.py:6"), patched=False, quick=True),
    Case("r_catch",
         ("DEV502", "r_catch.py:10", "`mean` was made on cpu at r_catch.py:8"),
         rehearse="cuda", quick=True),
    Case("test_q",
         ("DEV502", "test_q.py:12 in test_meta was given", "cpu and meta met in",
          "put there by `torch.empty` at test_q.py:7", "SHD405", "test_q.py:15"),
         patched=False),
    Case("x1_numpy", ("DEV503", "cuda:0", "x1_numpy.py:5", "`.cpu().numpy()`"), rehearse="cuda"),
    Case("x2_prefix",
         ("SHD409", "_orig_mod.", "saved at x2_prefix.py:7")),
    Case("x3_safetensors_tied",
         ("SHD416", "`lm_head.weight` and `transformer.wte.weight`", "save_model"),
         needs=("safetensors", "transformers")),
    Case("frozen_all",
         ("NEW314", "all 4 parameters of `model` (Classifier) are frozen, by frozen_all.py:",
          "`model.head.requires_grad_(True)`"), quick=True),
    Case("frozen_peft",
         ("NEW314", "of `model` (PeftModel) are frozen, by frozen_peft.py:",
          "PeftModel.from_pretrained at peft/peft_model.py", "`is_trainable=True`"),
         needs=("peft", "transformers")),
    Case("cut_no_grad",
         ("NEW314", "`Model.forward` at cut_no_grad.py:12, which runs without gradients"),
         quick=True),
    Case("cut_item", ("NEW314", "behind `.item()` at cut_item.py:", "in total_loss")),
    Case("cut_detach", ("NEW314", "behind `.detach()` at cut_detach.py:7 in normalize")),
    Case("cut_argmax",
         ("NEW314", "`Tensor.argmax`, which has no gradient", "scores, not decisions"),
         patched=False),
    Case("ckpt_reentrant",
         ("NEW314", "activation checkpointing without an input that has gradients",
          "ckpt_reentrant.py:28 in Model.forward", "`use_reentrant=False`")),
    Case("zero_between",
         ("NEW315", "has made 5 steps without a gradient for `model`",
          "takes them away between the backward pass and the step")),
    Case("gan_detached",
         ("NEW315", "without a gradient for `generator`", "the graph ends with `.detach()`")),
    Case("gan_wrong",
         ("NEW316", "`generator` gets gradients and is in no optimizer",
          "both have the parameters of `discriminator`")),
    Case("ao_after_opt",
         ("NEW312", "get no gradients and are never trained",
          "`Int8Tensor` were put in its place at ao_after_opt.py:"),
         patched=False, needs=("torchao",)),
    Case("tie_param_after_opt",
         ("NEW312", "others were put in its place at tie_param_after_opt.py:")),
    Case("ema_shared",
         ("STO216", "writes `model.body.weight` from its own memory: `ema`, made at"), quick=True),
    Case("backward_twice",
         ("STO217", "has freed the part behind `features` that both losses share")),
    Case("rnn_hidden",
         ("STO217", "`hidden` carries its graph from one iteration to the next",
          "`hidden = hidden.detach()`"),
         quick=True),
    Case("inplace_relu", ("STO218", "`Tensor.add_` at inplace_relu.py:", "`h = h + 1`")),
    Case("ac_step_order", ("STO218", "the step of `SGD`", "has changed `critic.weight`")),
    Case("dcp_clones",
         ("SHD442", "the 4 tensors that `dcp.load` filled", "`model` has none of these values")),
    Case("ao_safetensors",
         ("SHD443", "are of `Int8Tensor`, made of other tensors"),
         needs=("safetensors", "torchao")),
    Case("prefix_missing", ("SHD409", "the model's keys begin with `module.`")),
    Case("prefix_keyerror",
         ("SHD409", "`state` has `_orig_mod.embed.weight` and no `embed.weight`")),
    Case("whole_model",
         ("SHD447", "m.pt, saved at whole_model.py:20, holds an object of `__main__.Net`")),
    Case("whole_dict", ("SHD444", "under `'state_dict'`, as it was saved at whole_dict.py:")),
    Case("size_mismatch",
         ("SHD445", "m.pt, saved at size_mismatch.py:", "`fc.weight` 1000x16 for 10x16")),
    Case("scalars",
         ("DEV502", "`main` is computed there at scalars.py:", "`main.to(penalty.device)`"),
         rehearse="cuda:2"),
    Case("other_gpu",
         ("DEV611", "puts tensors on cuda:1, and there is 1 GPU", "`map_location` says cuda:1"),
         rehearse="cuda"),
    Case("leaf_moved", ("DEV547", "`image` is not a leaf"), rehearse="cuda"),
    Case("dtype_mixed",
         ("DEV614", "`model.head.weight` is float32", "`model.head.to(torch.bfloat16)`"),
         patched=False),
    Case("ddp_unused",
         ("NEW317", "`auxiliary.weight` and `auxiliary.bias`", "find_unused_parameters=True")),
    Case("ddp_replaced",
         ("NEW317", "`2.weight` and `2.bias` that it was made with", "made at ddp_replaced.py:"),
         patched=False),
    Case("dropped_move",
         ("DEV502", "made a copy on cuda:0, and `x` itself was not moved", "`x = x.cuda()`"),
         rehearse="cuda", quick=True),
    Case("rebound_weights",
         ("DEV502", "`model.0.weight` itself was not moved", "`model.to('cuda:0')`"),
         rehearse="cuda", patched=False),
    Case("cache_file",
         ("DEV502", "`layers.0.keys` was read onto cpu from", 'map_location="cuda:0"'),
         rehearse="cuda", needs=("transformers",)),
    Case("stop_tokens",
         ("DEV502", "`self.ids` was made on cpu at stop_tokens.py:", 'device="cuda:0"'),
         rehearse="cuda", needs=("transformers",)),
    Case("weight_norm",
         ("SHD448", "the model has `0.weight` as a parametrization computes it"), patched=False),
    Case("keeps_attention",
         ("STO222", "`model.0.map`, assigned at keeps_attention.py:", "belongs to a graph"),
         quick=True),
    Case("penalty_input",
         ("NEW318", "`mixed`, made at penalty_input.py:", "`mixed.requires_grad_()`"), quick=True),
    Case("empty_list",
         ("NEW319", "has its 3 layers in `tower.layers`, a plain container at empty_list.py:")),
    Case("scaler_empty",
         ("NEW320", "`encoder.weight` and `encoder.bias`, which have no gradients",
          "the graph ends at `.detach()` at scaler_empty.py:"), rehearse="cuda"),
    Case("grad_none",
         ("DEV547", "`image.grad` is None", "`Tensor.to` at grad_none.py:6"), rehearse="cuda"),
    Case("hook_inplace",
         ("STO223", "`model.1` (ReLU) changes in place", "`model.0` has a full backward hook")),
    Case("pickled_compiled",
         ("SHD449", "`model` has `model.0.act`, which is the compiled form of `swish`")),
    Case("quantized_load",
         ("SHD450", "are of `Int8Tensor` in the state dict", "assign=True"), needs=("torchao",)),
    Case("parallel_cpu",
         ("DEV625", "the whole `Sequential` is on cpu", "`.to('cuda:0')`"), rehearse="cuda:2"),
    Case("worker_graph",
         ("STO224", "`Embedded.__getitem__` at worker_graph.py:", "`@torch.no_grad()`")),
    Case("export_branch",
         ("XFR612", "depends on data, `x.abs().max() > 1`", "`torch.where`"),
         patched=False),
    Case("bf16_numpy",
         ("DEV615", "NumPy has no bfloat16", "`.float().numpy()`"), rehearse="cuda"),
    Case("dcp_empty",
         ("SHD442", "is given an empty dict and loads nothing", "dcp_empty.py:12"), patched=False),
    Case("ema_before_move",
         ("DEV502", "comes from `self.shadow[name] = weight.data.clone()`",
          "ema_before_move.py:10"), rehearse="cuda", patched=False),
    Case("labels_first_gpu",
         ("DEV502", "was moved cpu -> cuda:0 by `Tensor.to` at labels_first_gpu.py:17",
          "to cuda:1 instead, where it is used"), rehearse="cuda:2", patched=False),
    Case("replaced_head",
         ("OFF105", "`net.head.weight`, which is on cpu, made at replaced_head.py:",
          "came into net after the hooks (accelerate.AlignDevicesHook)"),
         rehearse="cuda", patched=False, needs=("accelerate",)),
    Case("group_adapter",
         ("OFF105", "to_q.lora_A.default.weight`, which is on cpu, made at group_adapter.py:",
          "came into unet after the hooks (diffusers.GroupOffloadingHook)"),
         rehearse="cuda", patched=False, needs=("diffusers", "peft")),
    Case("aligned_write",
         ("OFF105", "`0.weight` was replaced while its hook had loaded it"),
         patched=False, needs=("accelerate",)),
    Case("hook_tuple",
         ("RUN101", "`cpu_offload_with_hook` at hook_tuple.py:", "`net, other = ...`"),
         rehearse="cuda", patched=False, needs=("accelerate",)),
    Case("left_folder",
         ("RUN101", "until the program changed it at left_folder.py:",
          "`os.path.abspath('offload')`"), patched=False, needs=("accelerate",)),
    Case("fullgraph_hook",
         ("RUN101", "hooks of accelerate, which cannot be compiled", "made at fullgraph_hook.py:"),
         rehearse="cuda", patched=False, needs=("accelerate",)),
    Case("functional_meta",
         ("DEV502", "`functional_call` at functional_meta.py:", "was not given `1.running_mean`"),
         patched=False),
    Case("saved_hooks",
         ("RUN101", "`unpack` at saved_hooks.py:", "`tensor.to(device)`"),
         rehearse="cuda", patched=False),
    Case("future_unread",
         ("DEV502", "a task whose result nobody read ended with RuntimeError at future_unread.py:"),
         rehearse="cuda"),
    Case("slow_item",
         ("RUN101", "`timeout=0.3` of the DataLoader", "`Slow.__getitem__` at slow_item.py:"),
         patched=False),
    Case("wrapped_twice",
         ("NEW311", "the model is wrapped twice", "the model without an adapter"),
         patched=False, needs=("peft",)),
    Case("ao_merge",
         ("NEW304", "`Int8Tensor` does not answer `Tensor.add_`", "before `get_peft_model`"),
         patched=False, needs=("peft", "torchao")),
    Case("float_into_quantized",
         ("SHD450", "`0.weight` is a plain tensor in the state dict, but of `Int8Tensor`"),
         patched=False, needs=("torchao",)),
    Case("old_names",
         ("NEW311", "begin with `blocks.` there and with `encoder.layer.` in the model",
          'key_mapping, {r"^blocks\\.": "encoder.layer."}'),
         patched=False, needs=("transformers",)),
    Case("num_labels",
         ("RUN101", "`classifier.weight` 2x16 for 5x16", "`ignore_mismatched_sizes=True`"),
         patched=False, needs=("transformers",)),
    Case("async_unwaited",
         ("RUN101", "`dcp.async_save` at async_unwaited.py:", "`dcp.async_save(...).result()`"),
         patched=False),
    Case("fsdp_plain_state",
         ("RUN101", "its state (`exp_avg`) is of whole tensors, loaded by",
          "StateDictOptions(full_state_dict=True)"), patched=False),
)  # fmt: skip


@dataclass(frozen=True)
class Ended:
    """A program that was traced in a folder of its own."""

    folder: Path
    code: int
    told: str
    """What stood on the terminal because of a failure: the program's output is not in it."""

    @property
    def found(self) -> list[str]:
        """The lines at the end that name findings."""
        words = ("  error ", "  warning ", "  note ")
        return [each.strip() for each in self.told.splitlines() if each.startswith(words)]


def traced(case: Case, folder: Path) -> Ended:
    shutil.copy(HERE / f"{case.name}.py", folder)
    return again(case, folder)


def again(case: Case, folder: Path, run: str = "run") -> Ended:
    ended = command_in(folder, _command(case, run))
    return Ended(folder, ended.returncode, ended.stdout if case.is_tests else ended.stderr)


def _command(case: Case, run: str) -> list[str]:
    options = ["--rehearse", case.rehearse] if case.rehearse else []
    file = f"{case.name}.py"
    if case.is_tests:
        recorded = ["--tensortrail", "--tensortrail-directory", run]
        return ["pytest", "-q", "-p", "no:cacheprovider", *recorded, *options, file]
    return ["tensortrail", "trace", "--directory", run, *options, file, *case.arguments]


def patch(case: Case, folder: Path) -> str:
    """Apply what the run offers; gives what the command said."""
    return command_in(folder, ["tensortrail", "fix", "run", "--unsafe-fixes"]).stderr


def command_in(folder: Path, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "NO_COLOR": "1"}
    return warm.run(["-m", *command], folder, env=env, timeout=LIMIT)
