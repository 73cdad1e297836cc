"""Fixes of speechbrain that a test on a CPU does not show."""

from types import SimpleNamespace

import pytest
import torch
from bare_packages import stand_for

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"
two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two GPUs")
PARTS = ("dataio", "data_io", "decoders", "lobes", "nnet", "pretrained", "processing", "utils")
stand_for(
    ["speechbrain", "speechbrain.wordemb", *(f"speechbrain.{part}" for part in PARTS)],
    ["torchaudio", "sentencepiece", "soundfile", "h5py"],
)


@pytest.mark.fix("8177326a2")
def test_the_voice_of_the_gpu_is_analysed():
    from speechbrain.processing.voice_analysis import compute_periodic_features

    frames = torch.rand(1, 3, 64, device=GPU)
    lags = torch.full((1, 3), 10, device=GPU)
    jitter, shimmer = compute_periodic_features(frames, lags)
    assert (jitter.device, shimmer.device) == (torch.device(GPU), torch.device(GPU))


@pytest.mark.fix("736d2a412")
def test_features_of_the_gpu_are_joined():
    from speechbrain.utils.data_utils import concat_padded_features

    feats = [torch.rand(2, 4, 3, device=GPU) for _ in range(2)]
    lens = [torch.ones(2, device=GPU) for _ in range(2)]
    assert concat_padded_features(feats, lens, dim=1)[0].shape == (2, 8, 3)


@pytest.mark.fix("697507ba9")
def test_a_length_predicted_on_the_gpu_has_a_loss():
    from speechbrain.nnet.losses import distance_diff_loss

    predictions = torch.rand(2, 5, device=GPU)
    loss = distance_diff_loss(
        predictions, torch.tensor([2, 3], device=GPU), torch.ones(2, device=GPU)
    )
    assert loss.device == torch.device(GPU)


@pytest.mark.fix("27a39a05a")
def test_a_beam_is_formed_on_the_gpu():
    from speechbrain.processing.multi_mic import DelaySum

    signals = torch.rand(1, 3, 5, 2, 2, device=GPU)
    delays = torch.zeros(1, 3, 3)  # of the CPU, as a user has them
    assert DelaySum()(signals, delays).device == torch.device(GPU)


@pytest.mark.fix("25635ebad")
def test_noise_of_the_cpu_is_taken_for_signals_of_the_gpu():
    from speechbrain.processing.multi_mic import SrpPhat

    covariances = torch.rand(1, 2, 5, 2, 3, device=GPU)
    steering, directions = torch.rand(4, 5, 2, 2), torch.rand(4, 3)
    found = SrpPhat._srp_phat(covariances, steering, directions)
    assert found.device == torch.device(GPU)


@pytest.mark.fix("3e45253e8")
def test_words_of_the_gpu_become_letters():
    from speechbrain.wordemb.util import expand_to_chars

    letters = torch.tensor([[1, 0, 2, 3]], device=GPU)
    found = expand_to_chars(
        torch.rand(1, 2, 4, device=GPU), letters, torch.ones(1, device=GPU), word_separator=0
    )
    assert found.device == torch.device(GPU)


@pytest.mark.fix("a67ecd0a9")
def test_differences_are_computed_on_the_gpu():
    from speechbrain.processing.features import Deltas

    found = Deltas(input_size=4).to(GPU)(torch.rand(2, 6, 4, device=GPU))
    assert found.device == torch.device(GPU)


@pytest.mark.fix("0f166b1a9")
def test_a_normalization_is_moved():
    from speechbrain.processing.features import InputNormalization

    normalization = InputNormalization()
    normalization(torch.rand(2, 6, 4), torch.ones(2))
    normalization.to(GPU)
    assert normalization.glob_mean.device == torch.device(GPU)


@pytest.mark.fix("512534975")
def test_a_normalization_of_the_gpu_is_loaded_for_the_cpu(tmp_path):
    from speechbrain.processing.features import InputNormalization

    normalization = InputNormalization()
    normalization(torch.rand(2, 6, 4, device=GPU), torch.ones(2, device=GPU))
    normalization._save(tmp_path / "norm")
    other = InputNormalization()
    other._load(tmp_path / "norm", False, torch.device("cpu"))
    assert other.glob_mean.device.type == "cpu"


@pytest.mark.fix("eabc8025e")
def test_speech_that_starts_in_the_last_frame_of_the_gpu():
    from speechbrain.pretrained.interfaces import VAD

    detector = SimpleNamespace(device=torch.device(GPU), time_resolution=0.01, sample_rate=16000)
    decisions = torch.zeros(1, 4, 1, device=GPU)
    decisions[:, -1] = 1
    assert VAD.get_boundaries(detector, decisions).device == torch.device(GPU)


@pytest.mark.fix("2e10f3a5f")
def test_noise_after_the_end_is_masked_on_the_gpu():
    from speechbrain.pretrained.interfaces import HIFIGAN

    wave = torch.ones(2, 1, 8, device=GPU)
    found = HIFIGAN.mask_noise(None, wave, torch.tensor([2, 4]), 2)
    assert found.sum() == 12


@pytest.mark.fix("6f45a4cd7")
def test_a_text_is_spoken_on_the_gpu():
    from speechbrain.pretrained.interfaces import Tacotron2

    embed = torch.nn.Embedding(8, 4).to(GPU)
    seen = []

    def infer(text, lengths):
        seen.append(lengths.device)
        return embed(text), lengths, None

    speaker = SimpleNamespace(device=GPU, text_to_seq=lambda text: ([1, 2, 3], 3), infer=infer)
    assert Tacotron2.encode_batch(speaker, ["rain"])[0].device == torch.device(GPU)
    assert seen == [torch.device(GPU)]


@pytest.mark.fix("6ca1cd2ac")
@two_gpus
def test_the_device_of_a_run_is_the_current_one():
    from speechbrain.core import Brain

    Brain(hparams={"device": "cuda:1"})
    assert torch.cuda.current_device() == 1
