"""Headroom: how many groups have both right and wrong answers, without which reinforcement learning learns little."""

from sleuth.episodes.record import derive_seed
from sleuth.scale import Scale
from sleuth.training.loop import Parts
from sleuth.training.parallel import ranks
from sleuth.training.policy import Policy
from sleuth.training.questions.order import shuffled
from sleuth.training.questions.pool import is_mixed


def mixed_share(policy: Policy, parts: Parts, plan: Scale) -> float:
    """Share of groups with right and wrong answers among plan.warm_start_probe training questions, which the seed draws.

    Unequal rewards are no measure: wrong answers have them too, by format or evidence.
    """
    places = shuffled(len(parts.questions), "probe", plan.seed)[: plan.warm_start_probe]
    chosen = [parts.questions[place] for place in places]
    engine = parts.world.engine
    ranks.first_then_others(lambda: engine.sync(policy))
    world = parts.world.sampled(plan.temperature, plan.top_p)

    def played() -> tuple[int, int]:
        seed = derive_seed("probe", plan.seed)
        groups = parts.algorithm.collect(
            ranks.share(chosen), world, seed=seed, width=plan.rollout_batch, on_done=lambda _: None
        )
        return sum(map(is_mixed, groups)), len(groups)

    counts = ranks.gather(played)
    engine.release()
    return sum(mixed for mixed, _ in counts) / max(1, sum(total for _, total in counts))
