"""What functions of libraries give and demand, as far as places go.

Names are separated by blanks. Add a name to the list that describes it; no code needs to change."""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[str, Mapping[str, str]] = {
    "fresh": {
        # A new tensor on `device=`, else on the default device.
        "shaped": """torch.zeros torch.ones torch.empty torch.rand torch.randn torch.full torch.eye
  torch.randint torch.empty_strided torch.empty_permuted torch.normal""",
        "rows": """torch.arange torch.linspace torch.logspace torch.randperm torch.range
  torch.hann_window torch.hamming_window torch.bartlett_window torch.blackman_window
  torch.kaiser_window torch.tril_indices torch.triu_indices""",
        "of_data": "torch.tensor torch.scalar_tensor",
        "legacy": """
  torch.Tensor torch.FloatTensor torch.LongTensor torch.IntTensor torch.BoolTensor
  torch.ByteTensor torch.HalfTensor torch.DoubleTensor""",
    },
    "on_gpu": {
        # A new tensor on the current GPU.
        "legacy": """
  torch.cuda.FloatTensor torch.cuda.LongTensor torch.cuda.IntTensor torch.cuda.BoolTensor
  torch.cuda.ByteTensor torch.cuda.HalfTensor torch.cuda.DoubleTensor torch.cuda.BFloat16Tensor""",
    },
    "host": {
        # Always answers on the CPU.
        "functions": """
  torch.from_numpy torch.frombuffer torch.onnx.operators.shape_as_tensor
  torchvision.transforms.functional.to_tensor
  torchvision.transforms.functional.pil_to_tensor torchvision.io.read_image torchaudio.load""",
        "loaders": "torch.utils.data.DataLoader torch.utils.data.dataloader.DataLoader",
        "mappings": "safetensors.torch.load_file safetensors.torch.load",
    },
    "follows": {
        # The result lies where the first argument does, unless `device=` says otherwise.
        "like": """torch.zeros_like torch.ones_like torch.empty_like torch.full_like torch.rand_like
  torch.randn_like torch.randint_like""",
        # The other arguments say how it is to be written, and stay on the CPU; a Variable is its
        # tensor.
        "first": """torch.autograd.Variable torch.nn.utils.rnn.pack_padded_sequence
  torch.nn.utils.rnn.pad_packed_sequence torch.index_put torchvision.transforms.functional.normalize
  torchvision.transforms.functional.resize torchvision.transforms.functional.crop
  torchvision.transforms.functional.center_crop torchvision.transforms.functional.resized_crop
  torchvision.transforms.functional.pad torchvision.transforms.functional.hflip
  torchvision.transforms.functional.vflip torchvision.transforms.functional.rotate
  torchvision.transforms.functional.gaussian_blur torchaudio.functional.resample
  torchvision.utils.make_grid""",
        "new": "new_zeros new_ones new_tensor new_empty new_full new_empty_strided",
    },
    "meets": {
        # All tensors must lie together; those marked by_element take tensors without dimension
        # from anywhere.
        "by_element": """
  add sub subtract mul multiply div divide true_divide where maximum minimum pow eq ne
  lt le gt ge lerp addcmul addcdiv atan2 logical_and logical_or logical_xor bitwise_and bitwise_or
  bitwise_xor remainder fmod floor_divide rsub hypot mse_loss l1_loss smooth_l1_loss huber_loss
  binary_cross_entropy binary_cross_entropy_with_logits kl_div xlogy logaddexp copysign fmin fmax
  masked_fill index_fill allclose isclose""",
        "strictly": """
  cat concat concatenate stack hstack vstack dstack column_stack matmul mm bmm baddbmm
  addmm addbmm addmv einsum dot mv outer inner vdot kron cross cdist tensordot ger linear bilinear
  conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d embedding embedding_bag
  layer_norm group_norm batch_norm rms_norm scaled_dot_product_attention cross_entropy nll_loss
  cosine_similarity meshgrid cartesian_prod grid_sample index_select gather scatter scatter_add
  index_add index_copy masked_select masked_scatter take_along_dim take bucketize searchsorted isin
  equal multi_dot solve lstsq cosine_embedding_loss prelu scatter_reduce index_reduce""",
        # Of these the second argument is a tensor too.
        "second": """
  maximum minimum fmax fmin atan2 hypot logaddexp mse_loss l1_loss smooth_l1_loss huber_loss kl_div
  binary_cross_entropy binary_cross_entropy_with_logits cross_entropy nll_loss cosine_similarity
  matmul mm bmm mv dot outer inner vdot kron cross cdist linear bilinear conv1d conv2d conv3d
  conv_transpose1d conv_transpose2d conv_transpose3d embedding grid_sample bucketize masked_select
  take_along_dim""",
        # A gradient that is given lies where the tensor does that it is a gradient of.
        "gradients": "torch.autograd.backward torch.autograd.grad",
        # Of torch.distributed: what is sent and what is received lie together.
        # Of other libraries, as those of torch; a list of tensors is joined.
        "elsewhere": """
  einops.einsum einops.pack torchvision.ops.box_iou torchvision.ops.generalized_box_iou
  torchvision.ops.distance_box_iou torchvision.ops.complete_box_iou torchvision.ops.nms
  torchvision.ops.batched_nms torchvision.ops.sigmoid_focal_loss
  torchvision.ops.boxes.box_iou torchvision.ops.boxes.nms torchvision.ops.boxes.batched_nms""",
        "reshaped": """einops.rearrange einops.repeat einops.reduce torchvision.ops.box_area
  torchvision.ops.box_convert torchvision.ops.clip_boxes_to_image torchvision.ops.masks_to_boxes
  torchvision.ops.boxes.box_area torchvision.ops.boxes.clip_boxes_to_image""",
        "processes": """
  all_to_all_single all_to_all all_gather all_gather_into_tensor all_gather_single gather scatter
  reduce_scatter reduce_scatter_single reduce_scatter_tensor""",
    },
    "keeps": {
        # A tensor method whose result lies where the tensor does.
        "methods": """
  float half long int double bfloat16 bool byte short char contiguous detach clone
  requires_grad_ pin_memory abs neg exp log log2 sqrt rsqrt sin cos tanh sigmoid relu softmax
  log_softmax clamp clamp_ clip round floor ceil sign square reciprocal cumsum cumprod flip roll
  logical_not bitwise_not isnan isinf isfinite erf expm1 log1p log10 exp2 tan trunc frac logit
  tril triu sort argsort topk unique nan_to_num zero_ fill_ copy_ normal_ uniform_ bernoulli_
  t type_as index_put index_put_""",
        "shapes": """
  unsqueeze squeeze view reshape expand expand_as view_as repeat permute transpose flatten
  unflatten unfold movedim swapaxes tile narrow select chunk split unbind repeat_interleave
  diagonal diag diag_embed nonzero as_strided""",
        "reductions": """
  sum mean prod norm any all std var amax amin max min median argmax argmin trace det
  logdet""",
        "attributes": "T mT H data grad real imag values indices",
    },
    "plain": {
        # Gives nothing that lies on a device.
        "methods": """item tolist size dim ndimension numel stride element_size data_ptr nelement
  is_contiguous is_floating_point storage_offset get_device untyped_storage storage is_pinned
  register_hook backward is_complex numpy""",
        "attributes": """
  shape dtype ndim requires_grad is_cuda is_meta is_cpu layout itemsize nbytes names
  is_leaf is_sparse is_quantized grad_fn""",
        "functions": """
  torch.is_tensor torch.numel torch.is_floating_point torch.is_complex torch.finfo
  torch.iinfo torch.get_default_dtype torch.manual_seed torch.no_grad torch.enable_grad
  torch.inference_mode torch.save torch.promote_types torch.is_grad_enabled torch.autocast
  torch.Size torch.Generator torch.Stream torch.result_type int float bool str len round range
  isinstance hasattr print type id any all math.sqrt math.log math.ceil math.floor math.prod""",
        "constants": """
  math.pi math.e math.tau math.inf math.nan numpy.pi numpy.e numpy.inf numpy.nan torch.pi
  torch.e torch.inf torch.nan""",
        "modules": "math numpy os json random re logging warnings PIL",
    },
    "only_tensors": {
        # Hardly anything but a tensor has these: an argument they are asked of is one.
        "attributes": "requires_grad is_cuda ndim",
        # Only where they are called: a configuration may have a `long` or a `bfloat16`.
        "methods": """
  unsqueeze squeeze permute masked_fill masked_fill_ index_select contiguous detach expand_as
  type_as view_as new_zeros new_ones new_empty new_full new_tensor repeat_interleave flatten
  softmax bmm cumsum transpose view long numel dim expand size scatter_ masked_select
  is_floating_point unbind log_softmax fill_ zero_ copy_ add_ mul_ div_ sub_ clamp_ unflatten
  is_contiguous data_ptr index_copy_ index_add_ index_fill_ index_reduce_ scatter_add_ ne
  masked_scatter scatter_reduce logsumexp bernoulli_ normal_ uniform_ new_empty_strided
  logical_not logical_and logical_or bitwise_not index_put_ triu tril bfloat16 exp""",
        # What was moved to a device may be a module too; it has none of these.
        "moved": """
  gather scatter scatter_add matmul mm mv sub mul div eq ne lt gt le ge pow dot take_along_dim
  index_add index_copy logical_and where sum mean prod norm std var amax amin argmax argmin""",
    },
    "mappings": {
        # `return_tensors="pt"` gives a mapping of CPU tensors; of these methods, a tensor.
        "tensor_methods": "encode apply_chat_template",
        "attributes": """
  input_ids attention_mask token_type_ids pixel_values input_features input_values
  position_ids labels""",
    },
    "modules": {
        # Modules of torch.nn by what they demand. Leaves hold parameters that meet the input.
        "leaf": """Linear Bilinear LazyLinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d
  ConvTranspose3d Embedding EmbeddingBag LayerNorm RMSNorm GroupNorm BatchNorm1d BatchNorm2d
  BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d PReLU LSTM GRU RNN LSTMCell GRUCell
  RNNCell MultiheadAttention TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder
  TransformerDecoder Transformer""",
        # Of torchaudio.transforms: their tables are buffers that meet the input.
        "of_audio": """Resample Spectrogram MelSpectrogram MelScale MFCC LFCC InverseSpectrogram
  InverseMelScale GriffinLim SpectralCentroid""",
        # Move what they are called with themselves.
        "wrappers": """torch.nn.DataParallel torch.nn.parallel.DataParallel
  torch.nn.parallel.DistributedDataParallel""",
        "box": "Sequential ModuleList ModuleDict Module ParameterList ParameterDict",
        # Takes targets of the CPU beside log probabilities of a GPU, and moves them itself.
        "any_place": "CTCLoss",
        "leaf_getters": "get_input_embeddings get_output_embeddings",
    },
    "components": {
        # Models of libraries, told by the names of their classes, and what they compute with: of
        # what they
        # are called with, the first argument and these, which have to lie with the parameters.
        "packages": "transformers diffusers",
        "starts": "AutoModel Autoencoder MultiControlNet",
        "ends": """
  Model ModelWithProjection CausalLM ConditionalGeneration SequenceClassification MaskedLM
  TokenClassification QuestionAnswering ImageClassification Seq2SeqLM CTC DepthEstimation
  SafetyChecker Encoder Decoder Transformer Transformer2D Transformer3D""",
        "methods": """forward generate encode decode get_text_features get_image_features
  get_audio_features""",
        "demanded": """
  input_ids pixel_values input_features input_values inputs_embeds inputs sample
  hidden_states encoder_hidden_states decoder_input_ids guidance pooled_projections img_ids txt_ids
  controlnet_cond image_embeds text_embeds time_ids class_labels encoder_hidden_states_image""",
    },
    "returns_leaf_input": {
        # Helpers of libraries that give a tensor on `device=`, else on the default device.
        "on_device": "diffusers.utils.torch_utils.randn_tensor",
    },
    "runs": {
        # Run the module that they are given first: on what comes second, a tensor or a tuple of
        # them.
        "once": """torch.jit.trace torch.onnx.export torch.onnx.dynamo_export torch.export.export
  torch.export.export_for_training torch.export.draft_export torch._export.aot_compile
  torch._dynamo.export""",
        # On all that follows, and they give what it gives.
        "checkpoints": "torch.utils.checkpoint.checkpoint",
    },
    "outputs": {
        # Attributes of what a model gives back: tensors that lie where the model does.
        "attributes": """
  last_hidden_state logits pooler_output image_embeds text_embeds sample latents
  prediction_logits pred_boxes encoder_last_hidden_state hidden_states latent_dist sequences""",
    },
}
