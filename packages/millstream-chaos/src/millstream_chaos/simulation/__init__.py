"""The whole system in one process on a virtual clock, with faults at chosen places."""

from millstream_chaos.simulation.engine import EngineLost, EngineOutOfMemory, Stuck
from millstream_chaos.simulation.lives import RETRIES, Life, build_graph, find_operation, run, run_lives
from millstream_chaos.simulation.references import ReferenceDiffers, compute_reference
from millstream_chaos.simulation.setup import EPOCH_MILLIS, Faults, Program, Setup, Stumble
from millstream_chaos.simulation.world import OUTPUT, ROOT, World

__all__ = [
    "EPOCH_MILLIS",
    "OUTPUT",
    "RETRIES",
    "ROOT",
    "EngineLost",
    "EngineOutOfMemory",
    "Faults",
    "Life",
    "Program",
    "ReferenceDiffers",
    "Setup",
    "Stuck",
    "Stumble",
    "World",
    "build_graph",
    "compute_reference",
    "find_operation",
    "run",
    "run_lives",
]
