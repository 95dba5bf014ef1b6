"""TensorFlow: the global seed, deterministic operations and threads.

Keras needs no call of its own. Keras 3 draws the seeds of its layers and initialisers from Python's generator, Keras 2
from TensorFlow's; both are seeded. `keras.utils.set_random_seed` would restart streams the training may have used.
"""

from __future__ import annotations

from types import ModuleType

from ..recorder import Recorder
from ..selfseeding import watch_calls
from ..settings import Settings


def prepare(tensorflow: ModuleType, settings: Settings, recorder: Recorder) -> None:
    """Set what the level says, and notice when the training sets the seed itself."""
    if settings.seed is not None:
        tensorflow.random.set_seed(settings.seed)
    if settings.fixes_kernels:
        tensorflow.config.experimental.enable_op_determinism()
    if settings.threads is not None:
        tensorflow.config.threading.set_intra_op_parallelism_threads(settings.threads)
        tensorflow.config.threading.set_inter_op_parallelism_threads(settings.threads)
    if not settings.takes_seeds:
        watch_calls(tensorflow.random, "set_seed", "tensorflow.random.set_seed", recorder)
