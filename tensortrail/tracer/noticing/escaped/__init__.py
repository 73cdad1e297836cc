"""Exceptions that nothing handled, and what the frames that they left know of them: a file for each
kind. The frames are over, so that looking costs the program nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.batches_of_one import batch_of_one
from tensortrail.tracer.noticing.escaped.branches_on_data import branch_on_data
from tensortrail.tracer.noticing.escaped.copied_graphs import copied_graph
from tensortrail.tracer.noticing.escaped.dropped_labels import dropped_labels
from tensortrail.tracer.noticing.escaped.ended_senders import ended_sender
from tensortrail.tracer.noticing.escaped.failed_ranks import failed_rank
from tensortrail.tracer.noticing.escaped.foreign_gradients import foreign_gradient
from tensortrail.tracer.noticing.escaped.half_weights import half_weights
from tensortrail.tracer.noticing.escaped.hooked_activations import hooked_activation
from tensortrail.tracer.noticing.escaped.hooked_outputs import hooked_output
from tensortrail.tracer.noticing.escaped.incomplete_maps import incomplete_map
from tensortrail.tracer.noticing.escaped.lacked_keys import lacked_key
from tensortrail.tracer.noticing.escaped.lacking_gradients import lacking_gradient
from tensortrail.tracer.noticing.escaped.late_items import late_item
from tensortrail.tracer.noticing.escaped.left_folders import left_folder
from tensortrail.tracer.noticing.escaped.local_sizes import local_size
from tensortrail.tracer.noticing.escaped.lost_items import lost_item
from tensortrail.tracer.noticing.escaped.lost_leaves import lost_leaf
from tensortrail.tracer.noticing.escaped.meshes_apart import meshes_apart
from tensortrail.tracer.noticing.escaped.missed_targets import missed_targets
from tensortrail.tracer.noticing.escaped.missing_rows import missing_row
from tensortrail.tracer.noticing.escaped.missing_weights import missing_weights
from tensortrail.tracer.noticing.escaped.other_saved_sizes import other_saved_size
from tensortrail.tracer.noticing.escaped.parallel_models import parallel_model
from tensortrail.tracer.noticing.escaped.pickled_functions import pickled_function
from tensortrail.tracer.noticing.escaped.plain_states import plain_state
from tensortrail.tracer.noticing.escaped.recompiled_values import recompiled_value
from tensortrail.tracer.noticing.escaped.recomputed_states import recomputed_state
from tensortrail.tracer.noticing.escaped.refused_sizes import refused_size
from tensortrail.tracer.noticing.escaped.results_not_models import result_not_model
from tensortrail.tracer.noticing.escaped.several_losses import several_losses
from tensortrail.tracer.noticing.escaped.shared_files import shared_file
from tensortrail.tracer.noticing.escaped.specialised_sizes import specialised_size
from tensortrail.tracer.noticing.escaped.spread_weights import spread_weight
from tensortrail.tracer.noticing.escaped.traced_devices import traced_device
from tensortrail.tracer.noticing.escaped.uncompiled_lines import uncompiled_line
from tensortrail.tracer.noticing.escaped.unguarded_mains import unguarded_main
from tensortrail.tracer.noticing.escaped.unsaved_arguments import unsaved_arguments
from tensortrail.tracer.noticing.escaped.unused_parameters import unused_parameters
from tensortrail.tracer.noticing.escaped.unwaited_saves import unwaited_save
from tensortrail.tracer.noticing.escaped.used_up_steps import used_up_steps
from tensortrail.tracer.noticing.escaped.vmapped_writes import vmapped_write
from tensortrail.tracer.noticing.escaped.worker_graphs import worker_graph

LOOKS: tuple[Callable[[BaseException, Storages], dict[str, Any] | None], ...] = (
    lacked_key,
    unused_parameters,
    half_weights,
    copied_graph,
    pickled_function,
    parallel_model,
    hooked_output,
    lost_leaf,
    branch_on_data,
    worker_graph,
    recomputed_state,
    incomplete_map,
    spread_weight,
    batch_of_one,
    dropped_labels,
    ended_sender,
    lacking_gradient,
    local_size,
    lost_item,
    missed_targets,
    missing_row,
    missing_weights,
    other_saved_size,
    several_losses,
    specialised_size,
    uncompiled_line,
    unguarded_main,
    unsaved_arguments,
    used_up_steps,
    unwaited_save,
    failed_rank,
    foreign_gradient,
    hooked_activation,
    late_item,
    left_folder,
    meshes_apart,
    plain_state,
    recompiled_value,
    refused_size,
    shared_file,
    result_not_model,
    traced_device,
    vmapped_write,
)


def known_of(error: BaseException, storages: Storages) -> dict[str, Any] | None:
    """The facts of the first that knows it."""
    found = (look(error, storages) for look in LOOKS)
    return next((each for each in found if each is not None), None)
