"""GPU tests of other projects that a machine without a GPU can rehearse in some minutes."""

from __future__ import annotations

from pathlib import Path

from tests.real.suites import HELPERS, Suite

GPU_SUITES = {
    suite.project: suite
    for suite in (
        Suite(
            "accelerate",
            files=("tests/test_hooks.py", "tests/test_modeling_utils.py", "tests/test_offload.py",
                   "tests/test_big_modeling.py", "tests/test_memory_utils.py",
                   "tests/test_kwargs_handlers.py"),
        ),
        Suite(
            "bitsandbytes",
            files=("tests/test_linear8bitlt.py", "tests/test_parametrize.py",
                   "tests/test_modules.py"),
            tag="none",
            version="0.50.2",
            needs=(HELPERS, "bitsandbytes 0.50.2"),
        ),
        Suite(
            "compressed-tensors",
            files=("tests/test_offload/test_dispatch.py", "tests/test_offload/test_module.py",
                   "tests/test_offload/test_interface.py", "tests/test_offload/cache/test_cpu.py",
                   "tests/test_offload/cache/test_disk.py",
                   "tests/test_offload/cache/test_device.py",
                   "tests/test_compressors/test_pack_quant.py",
                   "tests/test_compressors/test_compress_decompress_module.py",
                   "tests/test_quantization/lifecycle/test_forward.py"),
            tag="none",
            version="0.18.0",
        ),
        Suite(
            "diffusers",
            files=("tests/hooks/test_group_offloading.py",
                   "tests/models/transformers/test_models_transformer_flux.py",
                   "tests/models/unets/test_models_unet_2d_condition.py"),
            source="src",
            options=("-m", "not slow", "-k",
                     "(offload or parallelism or Memory) and not Compile"),
        ),
        Suite(
            "kornia",
            files=tuple(
                f"tests/color/test_{name}.py" for name in ("hsv", "lab", "luv", "xyz", "yuv")
            ),
            folders=("",),
            tag="none",
            version="0",
            source="kornia",
            needs=(HELPERS, "helpers of kornia 1.0"),
            options=("--device", "cuda"),
        ),
        Suite(
            "lightning",
            files=tuple(
                f"tests/tests_fabric/{name}"
                for name in ("accelerators/test_cuda.py", "plugins/precision", "test_wrappers.py",
                             "utilities/test_init.py", "utilities/test_device_dtype_mixin.py",
                             "utilities/test_optimizer.py", "strategies/test_single_device.py",
                             "strategies/test_dp.py")
            ),
            folders=("tests", "src"),
            tag="none",
            version="0",
            source="src",
            needs=(HELPERS, "helpers of lightning 1.0"),
        ),
        Suite(
            "peft",
            files=("tests/test_tuners_utils.py", "tests/test_supertuning.py"),
            options=("-k", "gpu or cuda or accelerator or ephemeral or offload or device"),
            needs=(HELPERS, "helpers of peft 1.0"),
        ),
        Suite(
            "pyro",
            files=("tests/distributions/test_cuda.py", "tests/infer/autoguide/test_gaussian.py",
                   "tests/ops/test_provenance.py"),
            folders=("tests", "pyro"),
            tag="none",
            version="0",
            source="pyro",
            needs=(HELPERS, "helpers of pyro 1.0"),
        ),
        Suite(
            "pytorch-geometric",
            files=("test/nn/aggr", "test/utils/test_scatter.py",
                   "test/utils/test_softmax.py", "test/utils/test_segment.py",
                   "test/utils/test_sparse.py", "test/utils/test_spmm.py",
                   "test/nn/conv/test_message_passing.py", "test/nn/conv/test_rgcn_conv.py"),
            folders=("test", "torch_geometric"),
            tag="none",
            version="0",
            source="torch_geometric",
            needs=(HELPERS, "helpers of pytorch-geometric 1.0"),
        ),
        Suite(
            "safetensors",
            files=("tests/test_pt_comparison.py", "tests/test_pt_model.py"),
            folders=("bindings/python",),
            inside="bindings/python",
        ),
        Suite(
            "tensordict",
            files=("test/tensordict/test_methods.py", "test/nn/test_nn.py"),
            folders=("test",),
            tag="none",
            version="0.14.0",
            needs=(HELPERS, "helpers of tensordict 1.0"),
            options=("-k", "cuda"),
        ),
        Suite(
            "torchao",
            files=("test/quantization/test_quant_api.py",
                   "test/dtypes/test_affine_quantized_float.py", "test/float8/test_base.py",
                   "test/quantization/quantize_/workflows/int8/test_int8_tensor.py"),
            folders=("test",),
        ),
        Suite(
            "torchtitan",
            files=tuple(
                f"tests/unit_tests/test_{name}.py"
                for name in ("activation_checkpoint", "embedding", "loss", "module", "rope",
                             "set_determinism", "tools_utils", "fused_swiglu",
                             "varlen_attention")
            ),
            folders=("tests/unit_tests",),
            tag="none",
            version="0",
            source="torchtitan",
            needs=(HELPERS, "helpers of torchtitan 1.0"),
        ),
        Suite(
            "transformers",
            files=("tests/test_tiny_models.py",),
            options=("-k", "offload or parallelism or multi_gpu or sdpa_can or flex"),
            added=Path(__file__).parent / "transformers_tests",
        ),
        Suite(
            "transformer-engine",
            files=("tests/pytorch/test_cpu_offloading.py", "tests/pytorch/test_torch_compile.py",
                   "tests/pytorch/test_recipe.py"),
            folders=("tests/pytorch",),
            version="2.16",
            needs=(HELPERS, "transformer-engine 2.16.0"),
        ),
    )
}  # fmt: skip
