"""The loop that trains a policy: rollouts, rewards, signals, update; its log and its checkpoints."""

SINKS = {
    "tensorboard": "sleuth.training.runs.sinks:TensorBoardSink",
    "trackio": "sleuth.training.runs.sinks:TrackioSink",
    "wandb": "sleuth.training.runs.sinks:WandbSink",
}
"""Name → class, for `--tracker`."""
