"""accelerate places models over simulated GPUs, the CPU and the disk; its hooks do their work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
accelerate = pytest.importorskip("accelerate")
transformers = pytest.importorskip("transformers")

from tensortrail.tracer.rehearsal.devices.spec import Spec  # noqa: E402
from tensortrail.tracer.rehearsal.rehearsal import Rehearsal  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
CONFIG = transformers.LlamaConfig(
    vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=4,
    num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64,
)  # fmt: skip
EVERYWHERE = {
    "model.embed_tokens": 0, "model.rotary_emb": 0, "model.layers.0": 0, "model.layers.1": 1,
    "model.layers.2": "cpu", "model.layers.3": "disk", "model.norm": 1, "lm_head": 1,
}  # fmt: skip
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])


def llama() -> Any:
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(CONFIG).eval()


@pytest.fixture(scope="module")
def expected() -> Any:
    with torch.no_grad():
        return llama()(IDS).logits


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    llama().save_pretrained(tmp_path / "saved")
    return tmp_path / "saved"


def check(model: Any, expected: Any, ids: Any) -> None:
    with torch.no_grad():
        logits = model(ids).logits
    assert logits.device == ids.device
    torch.testing.assert_close(logits.cpu(), expected)


def places(model: Any) -> set[str]:
    return {str(parameter.device) for parameter in model.parameters()}


def test_a_map_over_two_gpus_the_cpu_and_the_disk(gpus: Any, expected: Any, tmp_path: Path) -> None:
    model = accelerate.dispatch_model(llama(), EVERYWHERE, offload_dir=tmp_path)
    assert places(model) == {"cuda:0", "cuda:1", "meta"}
    check(model, expected, IDS.cuda())
    check(model, expected, IDS)  # the first hook moves inputs, the last brings the result back
    assert places(model) == {"cuda:0", "cuda:1", "meta"}


def test_a_map_inferred_from_little_simulated_memory(
    gpus: Any, expected: Any, tmp_path: Path
) -> None:
    model = llama()
    size = sum(parameter.nbytes for parameter in model.parameters())
    chosen = accelerate.infer_auto_device_map(
        model,
        max_memory={0: size // 3, 1: size // 3, "cpu": size // 4},
        no_split_module_classes=["LlamaDecoderLayer"],
    )
    assert set(chosen.values()) == {0, 1, "disk"}
    check(accelerate.dispatch_model(model, chosen, offload_dir=tmp_path), expected, IDS.cuda())


def test_memory_is_found_to_be_that_of_the_simulated_gpus(gpus: Any) -> None:
    found = accelerate.utils.get_max_memory()
    assert {0, 1, "cpu"} == set(found)
    assert 3.9 * 2**30 < found[0] <= 4 * 2**30


@pytest.mark.parametrize("where", ["cpu", "disk"])
def test_offload_by_hooks(gpus: Any, expected: Any, tmp_path: Path, where: str) -> None:
    model = llama()
    if where == "cpu":
        accelerate.cpu_offload(model, 1)
    else:
        accelerate.disk_offload(model, tmp_path, 1)
    check(model, expected, IDS.to(1))
    assert places(model) == {"meta"}
    resident = torch.cuda.memory_allocated(1)
    assert resident < sum(parameter.numel() * 4 for parameter in model.parameters()) / 4
    assert torch.cuda.max_memory_allocated(1) > resident


def test_offload_with_a_hook_in_the_hand_of_the_user(gpus: Any, expected: Any) -> None:
    model, hook = accelerate.cpu_offload_with_hook(llama(), 0)
    assert places(model) == {"cpu"}
    check(model, expected, IDS.cuda())
    assert places(model) == {"cuda:0"}
    hook.offload()
    assert places(model) == {"cpu"}
    assert not torch.cuda.memory_allocated(0)


@pytest.mark.parametrize("device_map", [EVERYWHERE, "auto"], ids=["everywhere", "auto"])
def test_a_checkpoint_is_loaded_to_its_places(
    gpus: Any, expected: Any, saved: Path, device_map: Any
) -> None:
    with accelerate.init_empty_weights():
        model = transformers.LlamaForCausalLM(CONFIG).eval()
    assert places(model) == {"meta"}
    model = accelerate.load_checkpoint_and_dispatch(
        model,
        saved,
        device_map=device_map,
        offload_folder=saved / "offload",
        no_split_module_classes=["LlamaDecoderLayer"],
    )
    check(model, expected, IDS.cuda())


def test_from_pretrained_with_a_device_map(gpus: Any, expected: Any, saved: Path) -> None:
    model = transformers.LlamaForCausalLM.from_pretrained(
        saved, device_map=EVERYWHERE, offload_folder=saved / "offload"
    )
    assert places(model) == {"cuda:0", "cuda:1", "meta"}
    check(model, expected, IDS.cuda())


def trained(precision: str) -> tuple[list[float], Any]:
    from accelerate.state import AcceleratorState, PartialState

    AcceleratorState._reset_state(reset_partial_state=True)
    torch.manual_seed(0)
    accelerator = accelerate.Accelerator(mixed_precision=precision, gradient_accumulation_steps=2)
    model: Any = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    data = torch.utils.data.TensorDataset(torch.randn(16, 4), torch.randint(0, 2, (16,)))
    model, optimizer, batches = accelerator.prepare(
        model, optimizer, torch.utils.data.DataLoader(data, batch_size=4)
    )
    losses = []
    for features, labels in batches:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.cross_entropy(model(features), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(accelerator.gather(loss).item())
    PartialState._reset_state()
    return losses, accelerator


@pytest.mark.parametrize(("precision", "tolerance"), [("no", 1e-6), ("fp16", 2e-3), ("bf16", 2e-2)])
def test_a_training_loop_prepared_by_the_accelerator(precision: str, tolerance: float) -> None:
    expected, on_cpu = trained("no")
    assert on_cpu.device.type == "cpu"
    with Rehearsal(Spec(2)):
        losses, accelerator = trained(precision)
        assert accelerator.device.type == "cuda"
        assert (accelerator.scaler is not None) == (precision == "fp16")
    assert losses == pytest.approx(expected, rel=tolerance)


def embedding_left_behind() -> Any:
    model = llama().cuda()
    model.model.embed_tokens.cpu()
    return model.model.embed_tokens(IDS.cuda())


def offloaded_weight_read() -> Any:
    model = accelerate.cpu_offload(llama(), 0)
    return torch.ones(2, 16, device="cuda") * model.model.norm.weight


def dispatched_model_moved() -> Any:
    model = accelerate.dispatch_model(llama(), {"model": 0, "lm_head": "cpu"})
    return model.to("cuda")


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (embedding_left_behind, "got index is on cuda:0, different from other tensors on cpu"),
        (offloaded_weight_read, "Tensor on device meta is not on the expected device cuda:0"),
        (dispatched_model_moved, "You can't move a model that has some modules offloaded"),
    ],
)
def test_the_usual_mistakes_raise_as_on_a_gpu(
    gpus: Any, mistake: Callable[[], Any], message: str
) -> None:
    with pytest.raises(RuntimeError, match=message):
        mistake()


def test_the_embedding_left_behind_is_explained(explained: Callable[..., str]) -> None:
    text = explained(embedding_left_behind)
    assert "weight  cpu     float32 64x16  model.model.embed_tokens.weight" in text
    assert "moved cuda:0 -> cpu at" in text
    assert "in embedding_left_behind, Tensor.cpu" in text
    assert "cause    DEV502 `torch.nn.functional.embedding` raises" in text


def test_the_offloaded_weight_is_explained(explained: Callable[..., str]) -> None:
    text = explained(offloaded_weight_read)
    assert "other  meta    float32 16    model.model.norm.weight" in text
    assert "moved cpu -> meta at" in text
    assert "Hook brings it to cuda:0 only while model.model.norm" in text
