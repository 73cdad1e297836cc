"""Programs that no machine with GPUs runs, and what torch says of each."""

from __future__ import annotations

from tests.tracer.rehearsal.programs import Refused
from tests.tracer.rehearsal.refused_collectives import COLLECTIVES
from tests.tracer.rehearsal.refused_nondeterministic import NONDETERMINISTIC


def two(first: str, second: str) -> str:
    return (
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{first} and {second}!"
    )


def got(argument: str, place: str, home: str, method: str) -> str:
    return (
        f"Expected all tensors to be on the same device, but got {argument} is on {place}, "
        f"different from other tensors on {home} (when checking argument in method "
        f"wrapper_CUDA_{method})"
    )


HOST, GPU = ("cpu", "cuda:0"), ("cuda:0", "cpu")
MIXED = two("cuda:0", "cpu")
CONV = "Input type ({}) and {} type ({}) should be the same"
ON_GPU, ON_CPU = "torch.cuda.FloatTensor", "torch.FloatTensor"
ROWS = "embedding-on-another-device"
INDICES = "indices should be either on cpu or on the same device as the indexed tensor"
GENERATOR = "Expected a '{}' device type for generator but found '{}'"
GENERATORS = "generator-on-another-device"
WITHOUT_DATA = "Cannot copy out of meta tensor; no data!"
NUMPY = (
    "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
    "host memory first."
)
ids = "torch.tensor([0, 1])"


def lacks(kernel: str, kind: str) -> tuple[str, str, str]:
    """What is said of a type that a kernel does not take."""
    return f"\"{kernel}\" not implemented for '{kind}'", "", "NotImplementedError"


CUDNN = "getCudnnDataTypeFromScalarType() not supported for Long"

REFUSED = (
    # element by element
    Refused("add", "there + here", MIXED),
    Refused("multiply, host first", "here * there", MIXED),
    Refused("compare", "there > here", MIXED),
    Refused("add in place", "there += here", MIXED),
    Refused("host scalar in place", "x = torch.tensor(1.); x += there.sum()", MIXED),
    Refused("host tensor and a scalar of the GPU", "here + there.sum()", MIXED),
    Refused("two GPUs", "there + other", two("cuda:0", "cuda:1")),
    Refused("scalar of another GPU", "there + other.sum()", two("cuda:0", "cuda:1")),
    Refused("where, condition left behind", "torch.where(here > 0, there, there)", MIXED),
    Refused("maximum", "torch.maximum(there, here)", MIXED),
    Refused("lerp", "torch.lerp(there, here, 0.5)", MIXED),
    Refused("addcmul", "torch.addcmul(there, here, there)", MIXED),
    Refused("position ids", "there + torch.arange(3)", MIXED),
    Refused("attention mask added", "F.softmax(there + torch.zeros(3, 3), -1)", MIXED),
    Refused("cosine table", "there * torch.cos(torch.arange(3.))", MIXED),
    Refused("mask to fill", "there.masked_fill(here > 0, 0.)",
            "expected self and mask to be on the same device, but got mask on cpu and self on "
            "cuda:0"),
    Refused("mean squared error", "F.mse_loss(there, here)", MIXED),
    Refused("binary cross entropy", "F.binary_cross_entropy_with_logits(there, here)", MIXED),
    Refused("out elsewhere", "torch.add(there, there, out=torch.empty(3, 3))", MIXED),
    # matrices
    Refused("mm", "there @ here", got("mat2", *HOST, "mm")),
    Refused("mv", "here @ there[0]", got("mat", *HOST, "addmv_")),
    Refused("mv of a vector left behind", "there @ here[0]", got("mat", *GPU, "addmv_")),
    Refused("mv in vmap", "torch.vmap(lambda row: row @ there[0])(here)",
            got("mat", *HOST, "addmv_")),
    Refused("inner", "torch.inner(here, there)",
            "Expected tensor to have cpu DeviceType, but got tensor with cuda DeviceType (while "
            "checking arguments for inner())"),
    Refused("several products", "torch.linalg.multi_dot([here, here, there])",
            "multi_dot(): all tensors must be on the same device but tensor 0 is on cpu and tensor "
            "2 on cuda:0"),
    Refused("least squares", "torch.linalg.lstsq(here, there)",
            got("b", *GPU, "out_linalg_lstsq_out")),
    Refused("mm over two GPUs", "there @ other", got("mat2", "cuda:1", "cuda:0", "mm")),
    Refused("mm, out elsewhere", "torch.mm(there, there, out=torch.empty(3, 3))",
            got("self", *GPU, "mm_out_out")),
    Refused("linear layer, input left behind", "nn.Linear(3, 2).to(G)(here)",
            got("mat1", *HOST, "addmm")),
    Refused("linear layer, weights left behind", "nn.Linear(3, 2)(there)",
            got("mat1", *GPU, "addmm")),
    Refused("linear layer, weight only", "F.linear(there, here)", got("mat2", *HOST, "mm")),
    Refused("bmm", "torch.bmm(there[None], here[None])", got("mat2", *HOST, "bmm")),
    Refused("baddbmm", "torch.baddbmm(there[None], there[None], here[None])",
            got("batch2", *HOST, "baddbmm")),
    Refused("dot", "torch.dot(there[0], here[0])", got("tensor", *HOST, "_dot")),
    # convolutions
    Refused("conv2d, weights left behind", "nn.Conv2d(1, 1, 2)(there[None, None])",
            CONV.format(ON_GPU, "weight", ON_CPU), "conv-weight-on-another-device"),
    Refused("conv2d, input left behind",
            "nn.Conv2d(1, 1, 2).to(G)(here[None, None].expand(8, 1, 3, 3))",
            CONV.format(ON_CPU, "weight", ON_GPU), "conv-weight-on-another-device"),
    Refused("conv2d, a small input left behind", "nn.Conv2d(1, 1, 2).to(G)(here[None, None])",
            got("weight", "cuda:0", "cpu", "__slow_conv2d_forward")),
    Refused("conv2d, bias left behind",
            "F.conv2d(there[None, None], there[None, None], torch.ones(1))",
            CONV.format(ON_GPU, "bias", ON_CPU), "conv-weight-on-another-device"),
    Refused("conv1d over two GPUs", "F.conv1d(there[None], other[:, :, None].expand(3, 3, 1))",
            got("weight", "cuda:1", "cuda:0", "_cudnn_convolution")),
    # rows, indices
    Refused("embedding, table left behind", f"nn.Embedding(3, 2)({ids}.to(G))",
            got("index", *GPU, "_index_select"), ROWS),
    Refused("embedding, ids left behind", f"nn.Embedding(3, 2).to(G)({ids})",
            got("index", *HOST, "_index_select"), ROWS),
    Refused("host table, indices of the GPU", f"here[{ids}.to(G)]", f"{INDICES} (cpu)",
            "indices-on-another-device"),
    Refused("table and indices of two GPUs", f"there[{ids}.to(G1)]", f"{INDICES} (cuda:0)",
            "indices-on-another-device"),
    Refused("values put", f"there[{ids}] = torch.zeros(2, 3)", MIXED),
    Refused("values added",
            f"there.index_put_(({ids}.to(G),), torch.zeros(2, 3), accumulate=True)",
            "expected device cuda:0 but got device cpu for value tensor", ""),
    Refused("host table, values of the GPU", f"here[{ids}.to(G)] = there[:2]", MIXED),
    Refused("host table, values of the GPU where it is positive", "here[there > 0] = there.ravel()",
            MIXED),
    Refused("host table, values of the GPU added",
            f"here.index_put_(({ids}.to(G),), there[:2], accumulate=True)", MIXED),
    Refused("ids as numbers with a point", f"F.embedding({ids}.float().to(G), there)",
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            "Long, Int; but got torch.cuda.FloatTensor instead", "indices-of-another-type"),
    Refused("taken along", f"torch.take_along_dim(there, {ids}[None], 1)",
            "Expected tensor to have cuda:0 Device, but got tensor with cpu Device (while checking "
            "arguments for torch.take_along_dim():)"),
    Refused("blocks", "torch.block_diag(there, here)",
            "torch.block_diag: input tensors must all be on the same device. Input 0 is on device "
            "cuda:0 and input 1 is on device cpu"),
    Refused("window left behind",
            "torch.stft(there.ravel(), 8, window=torch.ones(8), return_complex=True)",
            "stft input and window must be on the same device but got self on cuda:0 and window on "
            "cpu"),
    Refused("product of whole numbers", "there.long() @ there.long()",
            "\"addmm_cuda\" not implemented for 'Long'", "", "NotImplementedError"),
    Refused("products of whole numbers", "torch.bmm(there.long()[None], there.long()[None])",
            *lacks("baddbmm_cuda", "Long")),
    Refused("matrix of whole numbers times a vector", "there.int() @ there.int()[0]",
            *lacks("addmv_impl_cuda", "Int")),
    Refused("inner product of whole numbers", "there[0].long() @ there[0].long()",
            *lacks("dot", "Long")),
    Refused("convolution of whole numbers",
            "F.conv2d(there[None, None].long(), there[None, None].long())", CUDNN, ""),
    Refused("mean over windows of whole numbers", "F.avg_pool2d(there[None].long(), 2)",
            *lacks("avg_pool2d_out_cuda_frame", "Long")),
    Refused("maximum over windows of whole numbers", "F.max_pool2d(there[None].long(), 2)",
            *lacks("max_pool2d_with_indices_out_cuda_frame", "Long")),
    Refused("softmax of whole numbers", "F.softmax(there.long(), -1)",
            *lacks("host_softmax", "Long")),
    Refused("mean squared error of whole numbers", "F.mse_loss(there.long(), there.long())",
            *lacks("mse_cuda", "Long")),
    Refused("gelu of whole numbers", "F.gelu(there.long())",
            *lacks("GeluCUDAKernelImpl", "Long")),
    Refused("images of whole numbers made larger",
            "F.interpolate(there[None, None].long(), scale_factor=2, mode='bilinear')",
            *lacks("upsample_bilinear2d_out_frame", "Long")),
    Refused("bits of narrow numbers", "there.half() & there.half()",
            *lacks("bitwise_and_cuda", "Half")),
    Refused("Cholesky factors of narrow numbers",
            "torch.linalg.cholesky(torch.eye(3, device=G).half())",
            *lacks("cholesky_cusolver", "Half")),
    Refused("QR of narrow numbers", "torch.linalg.qr(there.half())", *lacks("geqrf_cuda", "Half")),
    Refused("distances of narrow numbers", "torch.cdist(there.half(), there.half())",
            *lacks("cdist_cuda", "Half")),
    Refused("angles of narrow numbers", "torch.angle(there.bfloat16())",
            *lacks("angle_cuda", "BFloat16")),
    Refused("CTC loss of narrow numbers",
            f"F.ctc_loss(there[:, None].half(), {ids}[None, :1].to(G), {ids}[1:] * 3, {ids}[1:])",
            *lacks("ctc_loss_cuda", "Half")),
    Refused("histogram", "torch.histogram(there, 4)",
            "Could not run 'aten::histogram.bin_ct' with arguments from the 'CUDA' backend.", "",
            "NotImplementedError"),
    Refused("grid of two devices", "torch.meshgrid(there[0], here[0], indexing='ij')",
            "meshgrid expects all tensors to have the same device"),
    Refused("pairs of two devices", "torch.cartesian_prod(there[0], here[0])",
            "meshgrid expects all tensors to have the same device"),
    Refused("rows of a host table filled", f"here.index_fill(0, {ids}.to(G), 2.)", MIXED),
    Refused("a host table put into", f"torch.put(here, {ids}.to(G), {ids}.float().to(G))",
            got("index", "cuda:0", "cpu", "_put_")),
    Refused("masked values left behind", "there.masked_scatter(there > 0, here)",
            got("source", *HOST, "_masked_scatter_")),
    Refused("mask of a GPU, value of a GPU", "here.masked_fill(there > 0, there.sum())",
            "masked_fill_: Expected inputs to be on same device"),
    Refused("complex number of two devices", "torch.complex(there, here)",
            got("imag", *HOST, "out_complex_out")),
    Refused("order of boundaries left behind",
            "torch.searchsorted(there[0], there[0], sorter=torch.arange(3))",
            "torch.searchsorted(): sorter and boundary tensors should have same device type, but "
            "got sorter tensor device type cpu and input value tensor device type cuda:0"),
    Refused("solved by a factor left behind", "torch.cholesky_solve(there, here)",
            "Expected b and A to be on the same device, but found b on cuda:0 and A on cpu"),
    Refused("product of two types", "there @ there.half()",
            "expected mat1 and mat2 to have the same dtype, but got: float != c10::Half", ""),
    Refused("numbers with a point counted", "torch.bincount(there.ravel())",
            "\"bincount_cuda\" not implemented for 'Float'", "", "NotImplementedError"),
    Refused("gather", "there.gather(0, torch.zeros(1, 3).long())",
            got("index", *HOST, "gather")),
    Refused("scatter_add_", "there.scatter_add_(0, torch.zeros(1, 3).long().to(G), here)",
            got("src", *HOST, "scatter_add_")),
    Refused("scatter_ of a number", "there.scatter_(0, torch.zeros(1, 3).long(), 1.)",
            got("index", *HOST, "scatter__value")),
    Refused("index_select", f"there.index_select(0, {ids})",
            got("index", *HOST, "_index_select"), ROWS),
    Refused("index_add_", f"there.index_add_(0, {ids}.to(G), torch.ones(2, 3))",
            got("source", *HOST, "index_add_")),
    Refused("masked_scatter_", "there.masked_scatter_(there > 0, here)",
            got("source", *HOST, "_masked_scatter_")),
    Refused("cat", "torch.cat([there, here])", got("tensors", *HOST, "cat")),
    Refused("stack", "torch.stack([here, there])", got("tensors", *GPU, "cat")),
    Refused("bucketize", "torch.bucketize(there, torch.arange(3.))",
            got("boundaries", *HOST, "Tensor_bucketize")),
    # norms, losses, attention, recurrence, sampling
    Refused("layer norm", "F.layer_norm(there, (3,), torch.ones(3))",
            got("weight", *HOST, "_native_layer_norm")),
    Refused("layer norm of narrow numbers by wide weights",
            "F.layer_norm(there.half(), (3,), torch.ones(3, device=G))",
            "expected scalar type Half but found Float", ""),
    Refused("convolution of each channel, weight left behind",
            "F.conv1d(there[None], torch.ones(3, 1, 2), groups=3)",
            got("weight", *HOST, "__conv_depthwise2d")),
    Refused("batch norm, buffers left behind",
            "n = nn.BatchNorm1d(3).to(G); n.running_mean = torch.zeros(3); n(there)",
            got("running_mean", *HOST, "_native_batch_norm")),
    Refused("batch norm of images, buffers left behind",
            "n = nn.BatchNorm2d(1).to(G); n.running_mean = torch.zeros(1); n(there[None, None])",
            got("running_mean", *HOST, "_cudnn_batch_norm")),
    Refused("batch norm of images, input left behind",
            "nn.BatchNorm2d(1).to(G)(here[None, None])",
            got("weight", "cuda:0", "cpu", "_native_batch_norm")),
    Refused("RMS norm", "F.rms_norm(there, (3,), torch.ones(3))",
            got("weight", *HOST, "__fused_rms_norm")),
    Refused("bilinear layer", "nn.Bilinear(3, 3, 2)(there, there)",
            got("mat2", *HOST, "bmm")),
    Refused("transposed convolution, input left behind",
            "nn.ConvTranspose2d(1, 1, 2).to(G)(here[None, None])",
            got("weight", "cuda:0", "cpu", "slow_conv_transpose2d")),
    Refused("group norm", "F.group_norm(there, 1, torch.ones(3))",
            got("weight", *HOST, "_native_group_norm")),
    Refused("cross entropy", "F.cross_entropy(there, torch.zeros(3).long())",
            got("target", *HOST, "nll_loss_forward")),
    Refused("labels that are no indices",
            "F.cross_entropy(there, torch.zeros(3).int().to(G))",
            "\"nll_loss_forward_reduce_cuda_kernel_2d_index\" not implemented for 'Int'",
            "labels-of-another-type", "NotImplementedError"),
    Refused("labels that are no indices, without a reduction",
            "F.cross_entropy(there, torch.zeros(3).int().to(G), reduction='none')",
            "\"nll_loss_forward_no_reduce_cuda_kernel_index\" not implemented for 'Int'",
            "labels-of-another-type", "NotImplementedError"),
    Refused("class weights",
            "F.cross_entropy(there, torch.zeros(3).long().to(G), torch.ones(3))",
            got("weight", *HOST, "nll_loss_forward")),
    Refused("attention, keys left behind",
            "q, k = there[None, None], here[None, None]; F.scaled_dot_product_attention(q, k, q)",
            "Expected query, key, and value to have the same device type, but got query.device: "
            "cuda:0 key.device: cpu and value.device: cuda:0 instead."),
    Refused("attention without heads, values left behind",
            "F.scaled_dot_product_attention(there[None], there[None], here[None])",
            "Expected query, key, and value to have the same device type, but got query.device: "
            "cuda:0 key.device: cuda:0 and value.device: cpu instead."),
    Refused("GRU, packed input left behind",
            "nn.GRU(3, 2).to(G)(nn.utils.rnn.pack_sequence([here, here[:2]]))",
            got("mat1", *HOST, "addmm")),
    Refused("LSTM, input left behind", "nn.LSTM(3, 2).to(G)(here[None])",
            "Input and parameter tensors are not at the same device, found input tensor at cpu "
            "and parameter tensor at cuda:0"),
    Refused("GRU, hidden state left behind", "nn.GRU(3, 2).to(G)(there, torch.zeros(1, 2))",
            "Input and hidden tensors are not at the same device, found input tensor at cuda:0 "
            "and hidden tensor at cpu"),
    Refused("grid_sample", "F.grid_sample(there[None, None], torch.zeros(1, 2, 2, 2),"
            " align_corners=False)",
            got("grid", *HOST, "_grid_sampler_2d")),
    # gradients and optimizers
    Refused("gradient given from the host", "(there.requires_grad_() * 2).backward(here)",
            "invalid gradient at index 0 - expected device cuda:0 but got cpu", ""),
    Refused("gradient assigned from the host", "p = nn.Parameter(there); p.grad = here",
            "attempting to assign a gradient with device type 'cpu' to a tensor with device type "
            "'cuda'. Please ensure that the gradient and the tensor are on the same device",
            "gradient-on-another-device"),
    Refused("gradient of another GPU", "p = nn.Parameter(there); p.grad = other",
            "attempting to assign a gradient located on device with index '1' to a tensor located "
            "on device with index '0'. Please ensure that the gradient and the tensor are on the "
            "same device", "gradient-on-another-device"),
    Refused("optimizer state of the host", """\
            p = nn.Parameter(there); p.grad = there * 2
            o = torch.optim.AdamW([p], foreach=True); o.step()
            o.state[p]["exp_avg"] = o.state[p]["exp_avg"].cpu(); o.step()
            """, MIXED),
    Refused("optimizer state of another GPU", """\
            p = nn.Parameter(there); p.grad = there * 2
            o = torch.optim.AdamW([p], foreach=True); o.step()
            o.state[p]["exp_avg"] = o.state[p]["exp_avg"].to(G1); o.step()
            """,
            "Tensors of the same index must be on the same device and the same dtype except "
            "`step` tensors that can be CPU and float32/64",
            "optimizer-state-on-another-device"),
    # reads, pins, storages, files
    Refused("numpy", "there.numpy()", NUMPY, "", "TypeError"),
    Refused("np.asarray", "np.asarray(there)", NUMPY, "",
            "TypeError"),
    Refused("pin memory of a GPU", "there.pin_memory()",
            "cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned",
            "pinning-refused"),
    Refused("storage of another device", "here.set_(there)",
            'Attempted to set the storage of a tensor on device "cpu" to a storage on different '
            'device "cuda:0".  This is no longer allowed; the devices must match.', ""),
    Refused("file for a device that is not there", """\
            f = io.BytesIO(); torch.save(here, f); f.seek(0)
            torch.load(f, map_location="cuda:77")
            """,
            "Attempting to deserialize object on CUDA device 77 but torch.cuda.device_count() is",
            "device-of-checkpoint-not-here"),
    # without data
    Refused("meta and GPU", "there + torch.ones(3, 3, device='meta')",
            "Tensor on device meta is not on the expected device cuda:0!",
            "meta-tensor-meets-real-tensor"),
    Refused("meta to GPU", "torch.ones(3, device='meta').to(G)", WITHOUT_DATA,
            "meta-tensor-copied", "NotImplementedError"),
    Refused("meta module to GPU", "nn.Linear(3, 3, device='meta').to(G)",
            f"{WITHOUT_DATA} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to()"
            " when moving module from meta to a different device.", "module-moved-off-meta",
            "NotImplementedError"),
    Refused("item of meta", "torch.ones(1, device='meta').item()",
            "Tensor.item() cannot be called on meta tensors", "value-read-from-meta-tensor"),
    # random numbers
    Refused("host generator for the GPU",
            "torch.randn(3, device=G, generator=torch.Generator())",
            GENERATOR.format("cuda", "cpu"), GENERATORS),
    Refused("host generator where a GPU is the default",
            """\
            torch.set_default_device("cuda")
            try: torch.randperm(3, generator=torch.Generator())
            finally: torch.set_default_device(None)
            """,
            GENERATOR.format("cuda", "cpu"), GENERATORS),
    Refused("random state on a GPU", "torch.set_rng_state(torch.get_rng_state().to(G))",
            "RNG state must be a torch.ByteTensor", "random-state-not-on-cpu", "TypeError"),
    Refused("random state of a GPU on it",
            "torch.cuda.set_rng_state(torch.cuda.get_rng_state().to(G))",
            "RNG state must be a torch.ByteTensor", "random-state-not-on-cpu", "TypeError"),
    Refused("GPU generator for the host", "here.normal_(generator=torch.Generator(G))",
            GENERATOR.format("cpu", "cuda"), GENERATORS),
    Refused("host generator in place", "there.uniform_(generator=torch.Generator())",
            GENERATOR.format("cuda", "cpu"), GENERATORS),
    Refused("shuffling with a default device", """\
            with torch.device(G):
                list(torch.utils.data.DataLoader(range(4), shuffle=True))
            """,
            GENERATOR.format("cuda", "cpu"), GENERATORS),
    Refused("lengths of sequences on the GPU",
            "nn.utils.rnn.pack_padded_sequence(there[None], torch.tensor([3], device=G), True)",
            "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long", ""),
    Refused("flash attention of float32", """\
            with nn.attention.sdpa_kernel(nn.attention.SDPBackend.FLASH_ATTENTION):
                F.scaled_dot_product_attention(*[there[None, None]] * 3)
            """, "No available kernel. Aborting execution.", ""),
    Refused("a stream copied with its owner", "import copy; copy.deepcopy(torch.cuda.Stream())",
            "cannot pickle 'Stream' object", "", "TypeError"),
    Refused("a wait where waits are errors", """\
            torch.cuda.set_sync_debug_mode("error")
            try:
                there.sum().item()
            finally:
                torch.cuda.set_sync_debug_mode("default")
            """, "called a synchronizing CUDA operation", ""),
    # devices and memory
    Refused("a module moved by cuda() to the CPU", "nn.Linear(2, 2).cuda(torch.device('cpu'))",
            "Invalid device, must be cuda device", "cuda-asked-for-the-cpu"),
    Refused("device that is not there", "torch.ones(3, device='cuda:77')",
            "CUDA error: invalid device ordinal", "gpu-number-not-here", "AcceleratorError"),
    Refused("set_device too far", "torch.cuda.set_device(77)",
            "CUDA error: invalid device ordinal", "gpu-number-not-here", "AcceleratorError"),
    Refused("free memory of a GPU that is not there", "torch.cuda.mem_get_info(7)",
            "CUDA error: invalid device ordinal", "gpu-number-not-here", "AcceleratorError"),
    Refused("memory of a GPU that is not there", "there; torch.cuda.memory_allocated(7)",
            "Invalid device argument", "gpu-number-not-here"),
    Refused("stream of a GPU that is not there", "there; torch.cuda.current_stream(7)",
            "Device index value 7 is out of index range [0, ", "gpu-number-not-here"),
    Refused("more than there is", "torch.empty(1 << 44, device=G)",
            "CUDA out of memory. Tried to allocate 65536.00 GiB. GPU 0 has a total capacity of",
            "device-out-of-memory", "OutOfMemoryError"),
    Refused("gradient of a copy from the host", """\
            b = torch.zeros(3, requires_grad=True)
            torch.select_scatter(there, b, 0, 1).sum().backward()
            """, "Function SelectScatterBackward0 returned an invalid gradient at index 1",
            "operand-copied-across-devices"),
    *COLLECTIVES,
    *NONDETERMINISTIC,
)  # fmt: skip
