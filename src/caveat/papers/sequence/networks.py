"""One LSTM without dropout, with ordinary dropout, and with one mask per sequence."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from caveat.noise import LSTM
from caveat.papers.sequence.texts import FILLER

VARIANTS = ("none", "ordinary", "sequence")
WIDTH = 64  # of the vectors of words, and of the state
_FIRST_SD = 0.1  # of the vectors; torch's own is 1


class DroppedWords(nn.Embedding):
    """Vectors of words, some of which are missing throughout a sequence.

    The vector of a word is a row of a weight matrix, so its mask belongs to the word:
    in training mode it is drawn once for each sequence and word of the vocabulary, and
    wherever the dropped word stands its vector is zero.
    """

    drop_rate: float

    @classmethod
    def like(cls, embedding: nn.Embedding, drop_rate: float) -> "DroppedWords":
        """A copy of an embedding with such masks."""
        size = embedding.num_embeddings, embedding.embedding_dim
        copy = cls(*size, padding_idx=embedding.padding_idx)
        copy.load_state_dict(embedding.state_dict())
        copy.drop_rate = drop_rate
        return copy

    def forward(self, input: Tensor) -> Tensor:
        """Vectors (batch, time, width) of the words (batch, time)."""
        vectors = super().forward(input)
        if not self.training:
            return vectors
        kept = torch.ones(len(input), self.num_embeddings)
        mask = F.dropout(kept, self.drop_rate).gather(1, input)
        return vectors * mask.unsqueeze(-1)


class Reader(nn.Module):
    """Reads words one by one and predicts from the last state."""

    def __init__(self, n_words: int, n_outputs: int) -> None:
        super().__init__()
        self.words: nn.Embedding = nn.Embedding(n_words, WIDTH, padding_idx=FILLER)
        with torch.no_grad():
            self.words.weight *= _FIRST_SD
        self.after_words: nn.Module = nn.Identity()
        self.lstm: nn.LSTM = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.after_state: nn.Module = nn.Identity()
        self.head = nn.Linear(WIDTH, n_outputs)

    def forward(self, words: Tensor) -> Tensor:
        """Outputs (batch, outputs) for numbers of words (batch, time)."""
        _, (state, _) = self.lstm(self.after_words(self.words(words)))
        return self.head(self.after_state(state[-1]))


def make_reader(variant: str, drop_rate: float, size: tuple[int, int]) -> Reader:
    """A network in training mode, its first weights the same for all variants.

    Ordinary: a new mask at each step, on the vectors of words. Sequence: the same masks
    at all steps, on words, vectors and the state that is fed back. Both have one on the
    last state. Weights come from torch's generator; size is words and outputs.
    """
    reader = Reader(*size)
    if variant == "none":
        return reader
    reader.after_state = nn.Dropout(drop_rate)
    if variant == "ordinary":
        reader.after_words = nn.Dropout(drop_rate)
        return reader
    reader.words = DroppedWords.like(reader.words, drop_rate)
    reader.lstm = LSTM.like(
        reader.lstm, input_drop_rate=drop_rate, recurrent_drop_rate=drop_rate
    )
    return reader
