"""Exceptions that Sleuth raises.

The text of each is one line with the bad value and what to do. The command line prints it and
exits with a non-zero status.
"""


class SleuthError(Exception):
    """Base of all expected failures."""


class ConfigError(SleuthError):
    """A recipe, setting or command-line value that cannot be used."""


class DataError(SleuthError):
    """A data file or record that cannot be read; the text names file, line, field and reason."""


class RetrievalError(SleuthError):
    """An index or retriever that is missing, damaged or did not answer.

    During a rollout this fails the sample; it never scores it 0.
    """


class EngineError(SleuthError):
    """A model that could not be loaded, reached or prompted."""


class TooLongError(EngineError):
    """A question that does not fit the model's context."""


class RolloutError(SleuthError):
    """A trajectory or transcript that is malformed, or a request that the model refused."""


class RewardError(SleuthError):
    """A reward that could not be computed (for example NaN); the sample is left out, never trained on."""


class JudgeError(SleuthError):
    """A judge that could not be loaded or reached; its samples are left out."""


class BusyError(SleuthError):
    """A folder of results that another process is writing."""


class TrainingError(SleuthError):
    """A training run that cannot start, continue or resume."""


class OtherRunError(TrainingError):
    """A folder that holds another run."""


class RankError(SleuthError):
    """Another process of the same run failed and has printed why."""
