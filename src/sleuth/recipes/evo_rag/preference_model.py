"""The multi-head preference model: which of two actions in one context leads to the larger return.

EVO-RAG, §3.3: seven linear heads f_k, one per step reward, on a frozen language model's state of
prefix and candidate; L_RM = −(1/7) Σ_k log σ(f_k(x⁺) − f_k(x⁻)). As printed, every head learns
from the same pairs, ranked by total return.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from sleuth.algorithms.base import Companion, Groups
from sleuth.errors import TrainingError
from sleuth.recipes.evo_rag.siblings import Candidate, all_pairs, candidates_of
from sleuth.training.policy import Policy
from sleuth.types import Trajectory


def new_heads(width: int, seed: int, count: int = 7) -> nn.Linear:
    """K = `count` linear functions of a state of size D = `width`: small, different, and fixed by `seed`.

    They have no bias, which would cancel in every difference.
    """
    heads = nn.Linear(width, count, bias=False)
    generator = torch.Generator().manual_seed(seed)
    heads.weight.data = torch.randn(count, width, generator=generator) * 0.01 / width**0.5
    return heads


def preference_loss(chosen_P_K: Tensor, rejected_P_K: Tensor) -> Tensor:
    """L_RM, averaged over P pairs: mean over heads of −log σ(f_k(x⁺) − f_k(x⁻)); a scalar."""
    return -torch.nn.functional.logsigmoid(chosen_P_K - rejected_P_K).mean()


def accuracy(chosen_P_K: Tensor, rejected_P_K: Tensor) -> float:
    """Share of pairs whose better action has the larger mean score; a tie counts half."""
    return float((chosen_P_K.mean(-1) - rejected_P_K.mean(-1)).sign().add(1).mean()) / 2


class PreferenceModel(Companion):
    """Heads on the frozen encoder, trained one epoch on every step's pairs."""

    def __init__(
        self, policy: Policy, *, heads: int, margin: float, batch: int, lr: float, seed: int
    ) -> None:
        """The encoder is the policy's reference, which no update of the policy changes.

        A pair's returns differ by `margin` (Δ), and an update of the heads has `batch` pairs.
        """
        if policy.reference is None:
            policy.freeze_reference()
        width = int(policy.causal_lm.get_input_embeddings().weight.shape[1])  # type: ignore[operator]
        self.heads = new_heads(width, seed, heads)
        self._policy, self._margin, self._batch, self._lr = policy, margin, batch, lr

    def fit(self, groups: Groups, seed: int) -> dict[str, float]:
        """One epoch over every pair of siblings whose returns differ by Δ; figures named preference/….

        Accuracy and loss are those before the epoch, when none of these pairs has been learnt.
        """
        siblings = [candidates_of(group) for group in groups]
        pairs = [pair for each in siblings for pair in all_pairs(each, self._margin)]
        if not pairs:
            return {"preference/pairs": 0.0}
        states_2P_D = self._encode([turn for pair in pairs for turn in (pair.chosen, pair.rejected)])
        better, worse = states_2P_D[::2], states_2P_D[1::2]
        with torch.no_grad():
            before = self.heads(better), self.heads(worse)
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(pairs), generator=generator)
        # Fresh moments every epoch, so that the heads are all the state there is to save.
        optimiser = torch.optim.AdamW(self.heads.parameters(), lr=self._lr, weight_decay=0.0)
        for rows in torch.split(order, self._batch):
            loss = preference_loss(self.heads(better[rows]), self.heads(worse[rows]))
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return {
            "preference/pairs": float(len(pairs)),
            "preference/accuracy": accuracy(*before),
            "preference/loss": float(preference_loss(*before)),
        }

    def rank(self, siblings: Sequence[Sequence[Candidate]]) -> list[list[Candidate]]:
        """Candidates with the mean head's score in place of their return."""
        turns = [candidate.turn for group in siblings for candidate in group]
        with torch.no_grad():
            values = iter(self.heads(self._encode(turns)).mean(-1).tolist())
        return [[candidate._replace(value=next(values)) for candidate in group] for group in siblings]

    def state(self) -> dict[str, Tensor]:
        return {"heads": self.heads.weight.detach()}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned. Raises TrainingError if it belongs to another encoder."""
        if tensors["heads"].shape != self.heads.weight.shape:
            raise TrainingError("the checkpoint holds a preference model of another encoder")
        with torch.no_grad():
            self.heads.weight.copy_(tensors["heads"])

    def _encode(self, turns: Sequence[Trajectory]) -> Tensor:
        """The encoder's state after each context and action, [N, D] float32: that of the last token.

        A context is computed once for all its actions, and a turn once for all its pairs.
        """
        policy, states = self._policy, dict[tuple[tuple[int, ...], tuple[int, ...]], Tensor]()
        decoder = policy.causal_lm.get_decoder()  # type: ignore[operator]
        actions: dict[tuple[int, ...], dict[tuple[int, ...], None]] = defaultdict(dict)
        keys = [(context.tokens, action.tokens) for context, action in (turn.segments for turn in turns)]
        for context, action in keys:
            actions[context][action] = None
        with policy.as_reference(), torch.no_grad(), policy.forward.arithmetic():
            for context, tried in actions.items():
                ids = torch.tensor([context], device=policy.device)
                cache = decoder(input_ids=ids, use_cache=True).past_key_values
                cache.batch_repeat_interleave(len(tried))
                # Padding comes last and attention looks back only, so that no mask is needed for it.
                rows = pad_sequence([torch.tensor(action, device=policy.device) for action in tried], True)
                hidden_N_S_D = decoder(input_ids=rows, past_key_values=cache).last_hidden_state
                for action, hidden_S_D in zip(tried, hidden_N_S_D, strict=True):
                    states[context, action] = hidden_S_D[len(action) - 1].float().cpu()
        return torch.stack([states[key] for key in keys])
