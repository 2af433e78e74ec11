"""The loop that spends credit: rollouts, rewards, signals, update; its log and its checkpoints."""

SINKS = {
    "tensorboard": "sleuth.training.sinks:TensorBoardSink",
    "trackio": "sleuth.training.sinks:TrackioSink",
    "wandb": "sleuth.training.sinks:WandbSink",
}
"""Name → class, for `--tracker`."""
