"""sleuth demonstrate: right answers of a teacher as transcripts, for `sleuth train --demonstrations`."""

import argparse
from pathlib import Path

from sleuth.cli.output import print_json, warn
from sleuth.cli.runs.evaluating import add_arguments, open_all
from sleuth.errors import DataError

CHUNK = 200
"""Questions whose right answers are written together; an interrupt costs no more than these."""


def configure(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser)
    parser.add_argument(
        "--temperature", type=float, default=0.0, metavar="T", help="of the teacher (0 = greedy)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Ask the teacher every question of --data; write the right answers to OUTPUT, one a line.

    Questions that OUTPUT has an answer to already are left out.
    """
    from sleuth.rollouts.lessons import teach
    from sleuth.storage import LinesWriter, read_lines

    if not arguments.data:
        # Evaluation questions must not be learnt from.
        from sleuth.recipes import load_recipe

        arguments.data = load_recipe(arguments.recipe).with_settings(arguments.set).scale.train_data
    experiment, teacher, output = open_all(arguments, "demonstrations")
    output = output if output.suffix == ".jsonl" else Path(f"{output}.jsonl")
    known = {row.get("id") for row in read_lines(output)}
    questions = [question for question in experiment.eval_questions if question.id not in known]
    if known:
        warn(f"{output} holds {len(known)} demonstrations: {len(questions)} questions are left")
    world = experiment.world_of(teacher).sampled(arguments.temperature)
    kept = len(known)
    with LinesWriter(output) as lines:
        for start in range(0, len(questions), CHUNK):
            for row in teach(questions[start : start + CHUNK], world, experiment.recipe.scale.rollout_batch):
                lines.write(row)
                kept += 1
            warn(f"{min(start + CHUNK, len(questions))}/{len(questions)} questions, {kept} demonstrations")
    if not kept:
        raise DataError(f"none of {len(questions)} questions was answered correctly: use a larger model")
    counts = {"file": str(output), "kept": kept, "questions": len(experiment.eval_questions)}
    if arguments.json:
        print_json(counts)
    else:
        print(f"{counts['kept']} of {counts['questions']} questions answered correctly: {output}")
    return 0
