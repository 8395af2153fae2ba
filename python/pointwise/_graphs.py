"""CUDA graphs of compiled graphs, by torch's own trees: `mode="reduce-overhead"`. No part of inductor that compiles is used."""

import logging
import sys

import torch
from torch._guards import TracingContext

log = logging.getLogger("pointwise.compile")


class Graphs:
    """The CUDA graphs of a model: of its forward and of its backward."""

    def __init__(self):
        # Of the forward's graph; None without one.
        self.device = None

    def recorded(self, run, gm, is_backward, is_inference):
        """Returns what records a graph of `run` at a later call and replays it from then on; `run` where there can be none.

        `gm`: the module that `run` calls.
        """
        made = [x for node in gm.graph.nodes for x in (node.meta.get("val"),) if isinstance(x, torch.Tensor)]
        if not any(x.is_cuda for x in made):
            return run
        # Not before: these take 0.6 s to import.
        from torch._dynamo.backends import cudagraphs as own
        from torch._inductor import compile_fx, cudagraph_utils, utils

        devices = own.get_device_node_mapping(gm)
        why = cudagraph_utils.check_multiple_devices_or_any_cpu_nodes(devices)
        if why is None and (node := utils.get_first_incompatible_cudagraph_node(gm)) is not None:
            why = f"{node.target} cannot be part of one"
        if why is None and is_backward and self.device is None:
            why = "the forward has none"
        if why is not None:
            log.info("no CUDA graph: %s", why.removeprefix("skipping cudagraphs due to "))
            return self._announced(run) if is_backward and self.device is not None else run
        device = next(iter(devices)).index
        if is_backward:
            fixed = range(utils.count_tangents(gm))
        else:
            self.device, fixed = device, TracingContext.get().fw_metadata.static_input_indices
        replay = compile_fx.cudagraphify(
            run,
            fixed,
            device_index=device,
            stack_traces=own.get_stack_traces(gm),
            is_backward=is_backward,
            is_inference=is_inference,
            constants=tuple(_constants(gm)),
            placeholders=cudagraph_utils.get_placeholder_info(gm.graph),
            mutated_input_idxs=tuple(own.find_input_mutations(gm.graph)),
        )
        replay._boxed_call = True
        return replay

    def _announced(self, run):
        """Returns `run`, a backward without a graph of a forward with one: torch's trees must know that it runs."""

        def announced(args):
            from torch._inductor.cudagraph_trees import get_manager

            if (manager := get_manager(self.device, create_if_none_exists=False)) is not None:
                manager.set_to_running_backward()
            return run(args)

        announced._boxed_call = True
        return announced


def _constants(gm):
    """Returns the tensors that a module's graph reads beside its inputs."""
    for node in gm.graph.find_nodes(op="get_attr"):
        if isinstance(value := getattr(gm, node.target, None), torch.Tensor):
            yield value


def reset():
    """Forgets all graphs: for `torch.compiler.reset`."""
    if (trees := sys.modules.get("torch._inductor.cudagraph_trees")) is not None:
        trees.reset_cudagraph_trees()
