"""sleuth demonstrate: right answers of a teacher as transcripts, for `sleuth train --demonstrations`."""

import argparse
from pathlib import Path

from sleuth.cli.output import print_json, warn
from sleuth.cli.runs.evaluating import add_arguments, open_all


def configure(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser)
    parser.add_argument(
        "--temperature", type=float, default=0.0, metavar="T", help="of the teacher (0 = greedy)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Ask the teacher every question of --data; write the right answers to OUTPUT, one a line."""
    from sleuth.rollouts.lessons import teach
    from sleuth.storage import LinesWriter

    if not arguments.data:
        # Evaluation questions must not be learnt from.
        from sleuth.recipes import load_recipe

        arguments.data = load_recipe(arguments.recipe).scale.train_data
    experiment, teacher, output = open_all(arguments, "demonstrations")
    output = output if output.suffix == ".jsonl" else Path(f"{output}.jsonl")
    done = 0

    def show(_: object) -> None:
        nonlocal done
        done += 1
        if done % 100 == 0:
            warn(f"{done}/{len(experiment.eval_questions)} questions")

    world = experiment.world_of(teacher).sampled(arguments.temperature)
    width = experiment.recipe.scale.rollout_batch
    rows = teach(experiment.eval_questions, world, width, show)
    with LinesWriter(output) as lines:
        for row in rows:
            lines.write(row)
    counts = {"file": str(output), "kept": len(rows), "questions": len(experiment.eval_questions)}
    if arguments.json:
        print_json(counts)
    else:
        print(f"{counts['kept']} of {counts['questions']} questions answered rightly: {output}")
    return 0
