import math

import torch
from torch import nn

from .aufmerksamkeit import MehrkopfAufmerksamkeit


class Vorwaertsnetz(nn.Module):
    def __init__(self, breite, innen, ausfall=0.0):
        super().__init__()
        self.hinauf = nn.Linear(breite, innen)
        self.hinab = nn.Linear(innen, breite)
        self.ausfall = nn.Dropout(ausfall)

    def forward(self, x):
        return self.ausfall(self.hinab(nn.functional.gelu(self.hinauf(x))))


class Positionskodierung(nn.Module):
    """Sinus auf geraden, Kosinus auf ungeraden Spalten."""

    def __init__(self, breite, laenge):
        super().__init__()
        ort = torch.arange(laenge, dtype=torch.float64)[:, None]
        winkel = ort / 10000.0 ** (torch.arange(0, breite, 2, dtype=torch.float64) / breite)
        tafel = torch.zeros(laenge, breite, dtype=torch.float64)
        tafel[:, 0::2] = winkel.sin()
        tafel[:, 1::2] = winkel.cos()[:, : breite // 2]
        self.tafel = tafel

    def forward(self, x):
        if x.shape[1] > self.tafel.shape[0]:
            raise ValueError(f"{x.shape[1]} Stellen, höchstens {self.tafel.shape[0]}")
        return x + self.tafel[: x.shape[1]].to(x)


class Schicht(nn.Module):
    def __init__(self, breite, koepfe, innen, ausfall=0.0, kausal=True):
        super().__init__()
        self.norm_vor_aufmerksamkeit = nn.LayerNorm(breite)
        self.aufmerksamkeit = MehrkopfAufmerksamkeit(breite, koepfe, ausfall, kausal)
        self.norm_vor_netz = nn.LayerNorm(breite)
        self.netz = Vorwaertsnetz(breite, innen, ausfall)

    def forward(self, x):
        x = x + self.aufmerksamkeit(self.norm_vor_aufmerksamkeit(x))
        return x + self.netz(self.norm_vor_netz(x))


class Sprachmodell(nn.Module):
    def __init__(self, wortschatz, breite, koepfe, schichten, innen, fenster, ausfall=0.0):
        super().__init__()
        self.fenster = fenster
        self.einbettung = nn.Embedding(wortschatz, breite)
        self.positionen = Positionskodierung(breite, fenster)
        self.schichten = nn.ModuleList([Schicht(breite, koepfe, innen, ausfall) for _ in range(schichten)])
        self.norm = nn.LayerNorm(breite)
        self.kopf = nn.Linear(breite, wortschatz)

    def forward(self, kennungen):
        x = self.positionen(self.einbettung(kennungen))
        for schicht in self.schichten:
            x = schicht(x)
        return self.kopf(self.norm(x))

    @torch.no_grad()
    def erzeuge(self, anfang, anzahl, temperatur=1.0, beste=None):
        """Setzt jede Zeile um `anzahl` Kennungen fort; temperatur 0 nimmt stets die wahrscheinlichste."""
        if temperatur < 0:
            raise ValueError("temperatur darf nicht negativ sein")
        uebt = self.training
        self.eval()
        text = anfang
        for _ in range(anzahl):
            werte = self(text[:, -self.fenster :])[:, -1]
            if temperatur == 0:
                neu = werte.argmax(dim=-1, keepdim=True)
            else:
                werte = werte / temperatur
                if beste is not None:
                    grenze = werte.topk(min(beste, werte.shape[-1])).values[:, -1:]
                    werte = werte.masked_fill(werte < grenze, -math.inf)
                neu = torch.multinomial(werte.softmax(dim=-1), 1)
            text = torch.cat([text, neu], dim=1)
        self.train(uebt)
        return text
