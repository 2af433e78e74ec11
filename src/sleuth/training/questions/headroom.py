"""Headroom: how many groups of a policy have unequal rewards, without which reinforcement learning learns nothing."""

from sleuth.episodes.record import derive_seed
from sleuth.rewards.base import score_all
from sleuth.scale import Scale
from sleuth.training.figures import distinct, is_live
from sleuth.training.loop import Parts
from sleuth.training.parallel import ranks
from sleuth.training.policy import Policy
from sleuth.training.questions.order import shuffled


def live_share(policy: Policy, parts: Parts, plan: Scale) -> float:
    """Share of live groups among plan.warm_start_probe training questions, which the seed draws."""
    places = shuffled(len(parts.questions), "probe", plan.seed)[: plan.warm_start_probe]
    chosen = [parts.questions[place] for place in places]
    engine, reward = parts.world.engine, parts.reward.stages()[0]
    ranks.first_then_others(lambda: engine.sync(policy))
    world = parts.world.sampled(plan.temperature, plan.top_p)

    def played() -> tuple[int, int]:
        seed = derive_seed("probe", plan.seed)
        groups = parts.algorithm.collect(
            ranks.share(chosen), world, seed=seed, width=plan.rollout_batch, on_done=lambda _: None
        )
        episodes = distinct(groups)
        scores = {id(t): s for t, s in zip(episodes, score_all(reward, episodes, engine), strict=True)}
        scored = [[t if t.fault else t.scored(scores[id(t)]) for t in group] for group in groups]
        return sum(map(is_live, scored)), len(scored)

    counts = ranks.gather(played)
    engine.release()
    return sum(live for live, _ in counts) / max(1, sum(total for _, total in counts))
