import math

import torch
from torch import nn


def aufmerksamkeit(fragen, schluessel, werte, maske=None):
    """Gewichtetes Mittel der Werte. maske: wahr, wo hingeschaut werden darf."""
    punkte = fragen @ schluessel.transpose(-2, -1) / math.sqrt(fragen.shape[-1])
    if maske is not None:
        punkte = punkte.masked_fill(~maske, -math.inf)
        # Wer nichts sieht, bekommt null statt 0/0.
        blind = ~maske.expand(punkte.shape).any(dim=-1, keepdim=True)
        punkte = punkte.masked_fill(blind, 0.0)
        gewichte = torch.softmax(punkte, dim=-1).masked_fill(blind, 0.0)
    else:
        gewichte = torch.softmax(punkte, dim=-1)
    return gewichte @ werte


class MehrkopfAufmerksamkeit(nn.Module):
    def __init__(self, breite, koepfe, ausfall=0.0, kausal=True):
        super().__init__()
        if breite < 1 or koepfe < 1 or breite % koepfe:
            raise ValueError(f"breite {breite} ist nicht durch koepfe {koepfe} teilbar")
        self.koepfe = koepfe
        self.kausal = kausal
        self.fragen = nn.Linear(breite, breite, bias=False)
        self.schluessel = nn.Linear(breite, breite, bias=False)
        self.werte = nn.Linear(breite, breite, bias=False)
        self.ausgang = nn.Linear(breite, breite)
        self.ausfall = nn.Dropout(ausfall)

    def forward(self, x, maske=None):
        anzahl, laenge, breite = x.shape

        def teilen(y):
            return y.view(anzahl, laenge, self.koepfe, breite // self.koepfe).transpose(1, 2)

        if self.kausal:
            vergangenheit = torch.ones(laenge, laenge, dtype=torch.bool, device=x.device).tril()
            maske = vergangenheit if maske is None else maske & vergangenheit
        y = aufmerksamkeit(teilen(self.fragen(x)), teilen(self.schluessel(x)), teilen(self.werte(x)), maske)
        y = y.transpose(1, 2).reshape(anzahl, laenge, breite)
        return self.ausfall(self.ausgang(y))
