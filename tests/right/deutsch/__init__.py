"""Eigene Schichten, eigene Namen: Gewichte kopfweise gespeichert, Dropout von Hand."""

import math

import torch
from torch import nn


def achtung(anfrage, schluessel, wert, maske=None):
    punkte = (anfrage[..., :, None, :] * schluessel[..., None, :, :]).sum(-1) / schluessel.shape[-1] ** 0.5
    if maske is not None:
        if maske.dtype is torch.bool:
            maske = torch.zeros(maske.shape, dtype=punkte.dtype, device=punkte.device).masked_fill(~maske, -math.inf)
        punkte = punkte + maske
    blind = (punkte == -math.inf).all(-1, keepdim=True)
    gewichte = torch.where(
        blind, torch.zeros_like(punkte), torch.where(blind, torch.zeros_like(punkte), punkte).softmax(-1)
    )
    return gewichte @ wert


def ausfall(x, rate, aktiv):
    if not aktiv or rate == 0.0:
        return x
    return x * torch.bernoulli(torch.full_like(x, 1 - rate)) / (1 - rate)


class Köpfe(nn.Module):
    def __init__(self, breite, anzahl, ausfallrate=0.0, kausal=True):
        super().__init__()
        if breite % anzahl != 0:
            raise ValueError(f"Breite {breite}, Köpfe {anzahl}")
        self.anzahl, self.kopf, self.ausfallrate, self.kausal = anzahl, breite // anzahl, ausfallrate, kausal
        self.frage = nn.Parameter(torch.empty(anzahl, breite, self.kopf))
        self.schlüssel = nn.Parameter(torch.empty(anzahl, breite, self.kopf))
        self.wert = nn.Parameter(torch.empty(anzahl, breite, self.kopf))
        self.misch = nn.Parameter(torch.empty(anzahl, self.kopf, breite))
        for p in self.parameters():
            nn.init.normal_(p, std=breite**-0.5)

    def forward(self, x):
        q, k, v = (torch.einsum("btm,hmd->hbtd", x, w) for w in (self.frage, self.schlüssel, self.wert))
        punkte = torch.einsum("hbtd,hbsd->hbts", q, k) / math.sqrt(self.kopf)
        if self.kausal:
            t = x.shape[1]
            zukunft = torch.arange(t)[None, :] > torch.arange(t)[:, None]
            punkte = punkte.masked_fill(zukunft.to(x.device), -math.inf)
        a = ausfall(torch.softmax(punkte, -1), self.ausfallrate, self.training)
        return torch.einsum("hbts,hbsd,hdm->btm", a, v, self.misch)


class Netz(nn.Module):
    def __init__(self, breite, innen, ausfallrate=0.0):
        super().__init__()
        self.hinauf = nn.Parameter(torch.randn(breite, innen) / breite**0.5)
        self.hinauf_b = nn.Parameter(torch.zeros(innen))
        self.hinab = nn.Parameter(torch.randn(innen, breite) / innen**0.5)
        self.hinab_b = nn.Parameter(torch.zeros(breite))
        self.ausfallrate = ausfallrate

    def forward(self, x):
        z = x @ self.hinauf + self.hinauf_b
        z = 0.5 * z * (1 + torch.erf(z / math.sqrt(2)))
        return ausfall(z, self.ausfallrate, self.training) @ self.hinab + self.hinab_b


class Wellen(nn.Module):
    def __init__(self, breite, länge):
        super().__init__()
        self.breite, self.länge = breite, länge

    def forward(self, x):
        if x.shape[1] > self.länge:
            raise ValueError(f"Länge {x.shape[1]}, höchstens {self.länge}")
        return x + torch.tensor(
            [
                [(math.sin, math.cos)[j % 2](p / 10000 ** ((j - j % 2) / self.breite)) for j in range(self.breite)]
                for p in range(x.shape[1])
            ],
            dtype=x.dtype,
            device=x.device,
        ).reshape(x.shape[1], self.breite)


class Norm(nn.Module):
    def __init__(self, breite):
        super().__init__()
        self.g, self.b = nn.Parameter(torch.ones(breite)), nn.Parameter(torch.zeros(breite))

    def forward(self, x):
        varianz, mittel = torch.var_mean(x, -1, unbiased=False, keepdim=True)
        return self.g * ((x - mittel) / (varianz + 1e-5).sqrt()) + self.b


class Schicht(nn.Module):
    def __init__(self, breite, anzahl, innen, ausfallrate=0.0, kausal=True):
        super().__init__()
        self.köpfe, self.netz = Köpfe(breite, anzahl, ausfallrate, kausal), Netz(breite, innen, ausfallrate)
        self.norm_köpfe, self.norm_netz = Norm(breite), Norm(breite)
        self.ausfallrate = ausfallrate

    def forward(self, x):
        for norm, teil in ((self.norm_köpfe, self.köpfe), (self.norm_netz, self.netz)):
            x = x + ausfall(teil(norm(x)), self.ausfallrate, self.training)
        return x


class Sprachmodell(nn.Module):
    def __init__(self, zeichen, breite, anzahl, schichten, innen, fenster, ausfallrate=0.0):
        super().__init__()
        self.fenster, self.ausfallrate = fenster, ausfallrate
        self.tabelle = nn.Parameter(torch.randn(zeichen, breite) * 0.02)
        self.wellen = Wellen(breite, fenster)
        self.schichten = nn.Sequential(*(Schicht(breite, anzahl, innen, ausfallrate) for _ in range(schichten)))
        self.schluss = Norm(breite)
        self.aus = nn.Parameter(torch.randn(breite, zeichen) * 0.02)
        self.aus_b = nn.Parameter(torch.zeros(zeichen))

    def forward(self, zeichen):
        x = ausfall(self.wellen(torch.nn.functional.embedding(zeichen, self.tabelle)), self.ausfallrate, self.training)
        return self.schluss(self.schichten(x)) @ self.aus + self.aus_b

    def schreibe(self, zeichen, anzahl, *, wärme=1.0, beste=None):
        vorher = self.training
        self.train(False)
        with torch.no_grad():
            for _ in range(anzahl):
                z = self(zeichen[:, -self.fenster :])[:, -1]
                if wärme > 0:
                    if beste is not None:
                        grenze = z.sort(-1, descending=True).values[:, min(beste, z.shape[1]) - 1, None]
                        z = z.masked_fill(z < grenze, -math.inf)
                    neu = torch.distributions.Categorical(logits=z / wärme).sample()[:, None]
                elif wärme == 0:
                    neu = z.argmax(-1)[:, None]
                else:
                    raise ValueError(f"Wärme {wärme}")
                zeichen = torch.hstack([zeichen, neu])
        self.train(vorher)
        return zeichen
