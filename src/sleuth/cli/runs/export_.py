"""sleuth export: a trained run for the Hugging Face hub, or a recipe for training by verl."""

import argparse
from pathlib import Path

from sleuth.cli.arguments import add_shared
from sleuth.cli.output import warn
from sleuth.text import counted


def configure(parser: argparse.ArgumentParser) -> None:
    forms = parser.add_subparsers(dest="form", metavar="FORM", required=True)
    about = "write a trained run as a Hugging Face repository: model, recipe, and a card with its figures"
    hub = forms.add_parser("hub", help=about, description=about)
    hub.add_argument("run", type=Path, metavar="RUN", help="a run folder with a trained model")
    about = "write a recipe as a folder from which verl 0.9 trains it, on one machine or many"
    verl = forms.add_parser("verl", help=about, description=about)
    add_shared(verl, "recipe", "--set")
    add_shared(verl, "--index", metavar="URL", help="address of a 'sleuth serve-retriever'")
    verl.add_argument("--nodes", type=int, default=1, metavar="N", help="machines (default: 1)")
    verl.add_argument("--gpus", type=int, default=8, metavar="N", help="GPUs of each machine (default: 8)")
    verl.add_argument("--engine", default="vllm", help="server of the rollouts: vllm (default) or sglang")
    for form in (hub, verl):
        add_shared(form, "--output", required=True, help="folder to write")
    add_shared(verl, "--strict")


def run(arguments: argparse.Namespace) -> int:
    return _to_hub(arguments) if arguments.form == "hub" else _to_verl(arguments)


def _to_hub(arguments: argparse.Namespace) -> int:
    from sleuth.hub_layout import write_layout

    evaluations = write_layout(arguments.run, arguments.output)
    print(f"{arguments.output}: model, recipe, and a card with {counted(len(evaluations), 'evaluation')}")
    print(f"try: hf upload USER/NAME {arguments.output}")
    return 0


def _to_verl(arguments: argparse.Namespace) -> int:
    from sleuth.experiment import Experiment
    from sleuth.integrations.verl.export import write_export
    from sleuth.integrations.verl.settings import Cluster
    from sleuth.recipes import load_recipe, recipe_file

    experiment = Experiment(
        load_recipe(arguments.recipe).with_settings(arguments.set),
        arguments.output,
        index=arguments.index,
        strict=arguments.strict,
        recipe_file=recipe_file(arguments.recipe),
        settings=tuple(arguments.set),
        say=warn,
    )
    questions = write_export(experiment, Cluster(arguments.nodes, arguments.gpus, arguments.engine))
    folder = experiment.folder
    print(f"{folder}: {counted(len(questions), 'training question')} and the settings for verl")
    print(f"train: {folder}/run.sh")
    print(
        f"then: python3 -m verl.model_merger merge --backend fsdp --local_dir {folder}/checkpoints/global_step_N/actor "
        f"--target_dir {folder}/model"
    )
    return 0
