"""Run: the jobs of a plan that are missing. A job that was interrupted is continued, a finished one is only read.

A job whose folder was made with another recipe or index fails.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from pathlib import Path

from sleuth.engines import open_engine
from sleuth.errors import ConfigError, SleuthError
from sleuth.evaluation.judged import judge_answers
from sleuth.evaluation.result import RESULT, TRAJECTORIES, load_evaluation
from sleuth.experiment import Experiment
from sleuth.judges.llm import LLMJudge
from sleuth.memory import give_back
from sleuth.retrievers.evidence import Evidence
from sleuth.retrievers.perturbed.noisy import Noisy
from sleuth.robustness import noise_pool
from sleuth.storage import write_json
from sleuth.studies.plan import Job
from sleuth.studies.record import changed, claim

DONE = "trained.json"
"""Written into a run folder when its training is complete."""
Say = Callable[[str], None]


def is_done(job: Job) -> bool:
    """Whether nothing is left to do."""
    return (job.folder / (DONE if job.kind == "train" else RESULT)).is_file()


def run_jobs(jobs: Sequence[Job], index: str, say: Say, judge: LLMJudge | None = None) -> dict[str, str]:
    """Run what is missing, in order; returns why jobs failed, by folder. One failed job does not end the others.

    With `judge`, every evaluation gets the figure llm_judge.
    """
    failed: dict[str, str] = {}
    for number, job in enumerate(jobs, 1):
        what = f"{number}/{len(jobs)} {job.row}: {job.kind} {job.recipe.name} {job.dataset}".rstrip()
        needed = [folder for folder in (job.weights, job.evidence) if folder is not None]
        if blocked := [folder for folder in needed if str(folder) in failed]:
            failed[str(job.folder)] = f"needs {blocked[0]}, which failed"
        else:
            try:
                if reason := changed(job, index):
                    raise ConfigError(reason)
                if is_done(job) and not judge:
                    say(f"{what}: done before")
                else:
                    say(what)
                    _run(job, index, say, judge)
            except SleuthError as error:
                failed[str(job.folder)] = str(error)
                say(f"{what}: {error}")
            finally:
                gc.collect()  # a job's model and engine refer to each other, and the next job needs the memory
                give_back()
    return failed


def _run(job: Job, index: str, say: Say, judge: LLMJudge | None) -> None:
    if not is_done(job):
        claim(job, index)
    if job.kind == "train":
        if not is_done(job):
            experiment = Experiment(job.recipe, job.folder, index=index, say=say, lessons=job.lessons)
            summary = experiment.run(evaluate=False)
            write_json(job.folder / DONE, summary)
    else:
        _evaluate(job, index, say)
        if judge is not None:
            judge_answers(load_evaluation(job.folder), judge)


def _evaluate(job: Job, index: str, say: Say) -> None:
    if is_done(job):
        return
    recipe, noise = job.recipe, job.level
    if job.evidence is not None:
        recipe, noise = recipe.but(retriever=Evidence(str(job.evidence / TRAJECTORIES))), 0
    if noise:
        # Room for the noise, which would otherwise be dropped first.
        recipe = recipe.sized(max_context=recipe.scale.max_context + 200 * noise)
    perturbation = {"kind": "noise", "level": str(noise)} if noise else {}
    experiment = Experiment(recipe, job.folder.parent, index=index, say=say, perturbation=perturbation)
    experiment.checks_leaks = job.weights is not None
    if noise:
        experiment.retriever = Noisy(experiment.retriever, noise, noise_pool(experiment))
    engine = open_engine(str(_model(job)))
    experiment.evaluate(job.folder.name, engine)


def _model(job: Job) -> Path | str:
    if job.weights is None:
        return job.recipe.scale.model
    model = job.weights / "model"
    if not model.is_dir():
        raise ConfigError(f"{job.weights} has no trained model yet")
    return model
