# -*- coding: utf-8 -*-
"""Un transformeur pour le cours : une fonction d'attention, une tête, plusieurs têtes, un bloc."""
import numpy as np
import torch
from torch import nn


def attention_normalisee(requetes, cles, valeurs, interdit=None):
    """interdit : booléen, vrai là où la requête n'a pas le droit de regarder."""
    affinites = torch.einsum("...id,...jd->...ij", requetes, cles) / np.sqrt(requetes.size(-1))
    if interdit is not None:
        affinites = affinites.masked_fill(interdit, float("-inf"))
    maximum = affinites.max(dim=-1, keepdim=True).values.clamp(min=torch.finfo(affinites.dtype).min)
    exponentielles = torch.exp(affinites - maximum)
    somme = exponentielles.sum(dim=-1, keepdim=True)
    # une requête qui ne voit rien : somme nulle, résultat nul
    poids = exponentielles / somme.masked_fill(somme == 0, 1.0)
    return torch.einsum("...ij,...jd->...id", poids, valeurs)


def futur(longueur, appareil=None):
    i = torch.arange(longueur, device=appareil)
    return i[None, :] > i[:, None]


class TeteAttention(nn.Module):
    def __init__(self, dimension, dimension_cle=None, dimension_valeur=None, causale=True):
        super().__init__()
        dimension_cle = dimension if dimension_cle is None else dimension_cle
        dimension_valeur = dimension if dimension_valeur is None else dimension_valeur
        self.requete = nn.Linear(dimension, dimension_cle, bias=False)
        self.cle = nn.Linear(dimension, dimension_cle, bias=False)
        self.valeur = nn.Linear(dimension, dimension_valeur, bias=False)
        self.causale = causale

    def forward(self, x):
        interdit = futur(x.size(1), x.device) if self.causale else None
        return attention_normalisee(self.requete(x), self.cle(x), self.valeur(x), interdit)


class AttentionMultiTetes(nn.Module):
    """Les têtes l'une après l'autre, puis une projection."""

    def __init__(self, dimension, nb_tetes, abandon=0.0, causale=True):
        super().__init__()
        if dimension % nb_tetes != 0:
            raise ValueError("la dimension doit être un multiple du nombre de têtes")
        d = dimension // nb_tetes
        self.tetes = nn.ModuleList([TeteAttention(dimension, d, d, causale) for _ in range(nb_tetes)])
        self.projection = nn.Linear(dimension, dimension)
        self.abandon = nn.Dropout(abandon)

    def forward(self, x):
        return self.abandon(self.projection(torch.cat([tete(x) for tete in self.tetes], dim=-1)))


class ReseauDense(nn.Module):
    def __init__(self, dimension, dimension_cachee, abandon=0.0):
        super().__init__()
        self.couches = nn.Sequential(
            nn.Linear(dimension, dimension_cachee),
            nn.ReLU(),
            nn.Linear(dimension_cachee, dimension),
            nn.Dropout(abandon),
        )

    def forward(self, x):
        return self.couches(x)


class EncodagePositionnel(nn.Module):
    def __init__(self, longueur_max, dimension):
        super().__init__()
        k = np.arange(dimension) // 2
        angles = np.arange(longueur_max)[:, None] / np.power(10000.0, 2 * k / dimension)[None, :]
        table = np.where(np.arange(dimension) % 2 == 0, np.sin(angles), np.cos(angles))
        self.table = nn.Parameter(torch.tensor(table, dtype=torch.get_default_dtype()), requires_grad=False)

    def forward(self, x):
        if x.size(1) > self.table.size(0):
            raise ValueError("séquence trop longue")
        return x + self.table[: x.size(1)]


class Bloc(nn.Module):
    """Pré-normalisation."""

    def __init__(self, dimension, nb_tetes, dimension_cachee, abandon=0.0, causale=True):
        super().__init__()
        self.attention = AttentionMultiTetes(dimension, nb_tetes, abandon, causale)
        self.reseau = ReseauDense(dimension, dimension_cachee, abandon)
        self.norme1 = nn.LayerNorm(dimension)
        self.norme2 = nn.LayerNorm(dimension)

    def forward(self, x):
        x = x + self.attention(self.norme1(x))
        x = x + self.reseau(self.norme2(x))
        return x
