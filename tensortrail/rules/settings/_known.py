"""The names that libraries know, as the code of one release has them."""

from __future__ import annotations

ACCELERATE = frozenset((
    "command_file", "commands", "compute_environment", "debug", "deepspeed_config",
    "distributed_type", "downcast_bf16", "dynamo_backend", "dynamo_config",
    "enable_cpu_affinity", "fp16", "fp8_config", "fsdp_config", "gpu_ids", "machine_rank",
    "main_process_ip", "main_process_port", "main_training_function", "megatron_lm_config",
    "mixed_precision", "mpirun_config", "num_machines", "num_processes", "parallelism_config",
    "rdzv_backend", "same_network", "tpu_env", "tpu_name", "tpu_use_cluster", "tpu_use_sudo",
    "tpu_vm", "tpu_zone", "use_cpu",
))  # fmt: skip
"""accelerate 1.15.0: the fields of `ClusterConfig`, and two that `process_config` translates."""
FSDP = frozenset((
    "activation_checkpointing", "activation_checkpointing_offload", "auto_wrap_policy",
    "backward_prefetch", "cpu_ram_efficient_loading", "forward_prefetch",
    "fsdp_activation_checkpointing", "fsdp_activation_checkpointing_offload",
    "fsdp_auto_wrap_policy", "fsdp_backward_prefetch", "fsdp_cpu_ram_efficient_loading",
    "fsdp_forward_prefetch", "fsdp_ignored_modules", "fsdp_min_num_params",
    "fsdp_offload_params", "fsdp_reshard_after_forward", "fsdp_sharding_strategy",
    "fsdp_state_dict_type", "fsdp_sync_module_states", "fsdp_transformer_layer_cls_to_wrap",
    "fsdp_use_orig_params", "fsdp_version", "ignored_modules", "min_num_params",
    "offload_params", "reshard_after_forward", "sharding_strategy", "state_dict_type",
    "sync_module_states", "transformer_layer_cls_to_wrap", "use_orig_params", "version",
))  # fmt: skip
"""accelerate 1.15.0: the arguments of `accelerate launch`, which adds `fsdp_` itself."""
DEEPSPEED = frozenset((
    "deepspeed_config_file", "deepspeed_exclusion_filter", "deepspeed_hostfile",
    "deepspeed_inclusion_filter", "deepspeed_moe_layer_cls_names",
    "deepspeed_multinode_launcher", "gradient_accumulation_steps", "gradient_clipping",
    "offload_optimizer_device", "offload_optimizer_nvme_path", "offload_param_device",
    "offload_param_nvme_path", "zero3_init_flag", "zero3_save_16bit_model", "zero_stage",
))  # fmt: skip
"""accelerate 1.15.0: the arguments of `accelerate launch`."""
ZERO = frozenset((
    "allgather_bucket_size", "allgather_partitions", "allgather_sequential",
    "contiguous_gradients", "cpu_offload", "cpu_offload_param", "cpu_offload_use_pin_memory",
    "elastic_checkpoint", "enable_sanity_checks", "gather_16bit_weights_on_model_save",
    "ignore_unused_parameters", "leaf_module", "legacy_stage1", "load_from_fp32_weights",
    "log_trace_cache_warnings", "max_live_parameters", "max_reuse_distance",
    "memory_efficient_linear", "mics_hierarchical_params_gather", "mics_shard_size",
    "model_persistence_threshold", "module_granularity_threshold", "offload_optimizer",
    "offload_param", "overlap_comm", "override_module_apply", "param_persistence_threshold",
    "pipeline_loading_checkpoint", "prefetch_bucket_size", "reduce_bucket_size",
    "reduce_scatter", "round_robin_gradients", "save_muon_momentum_buffer_in_memory", "stage",
    "stage3_allgather_sequential", "stage3_gather_16bit_weights_on_model_save",
    "stage3_gather_fp16_weights_on_model_save", "stage3_max_live_parameters",
    "stage3_max_reuse_distance", "stage3_model_persistence_threshold",
    "stage3_module_granularity_threshold", "stage3_param_persistence_threshold",
    "stage3_prefetch_bucket_size", "stage3_use_all_reduce_for_fetch_params", "sub_group_size",
    "use_all_reduce_for_fetch_params", "use_multi_rank_bucket_allreduce", "zenflow",
    "zero_hpz_partition_size", "zero_quantized_gradients",
    "zero_quantized_nontrainable_weights", "zero_quantized_weights", "zeropp_loco_param",
))  # fmt: skip
"""DeepSpeed 0.19.6: the fields of `DeepSpeedZeroConfig` and their aliases."""
ZERO_READ_IN = "DeepSpeed 0.19.6, runtime/zero/config.py, DeepSpeedZeroConfig"
RENAMED = {
    "fsdp_backward_prefetch_policy": "fsdp_backward_prefetch",
    "backward_prefetch_policy": "backward_prefetch",
}
"""What stood in older files."""
