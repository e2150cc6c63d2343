"""Words of other languages in names, in English: people name what they write in their own.

German, Spanish, Portuguese, French, Italian and Chinese in pinyin, without accents.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

__all__ = ["in_english"]

_WORDS = {
    "attention": "aufmerksamkeit atencion atencao attenzione zhuyili zhuyi",
    "multi_head": "mehrkopf multiple multicabeza multicabezas multitete multitetes multitesta duotou",
    "self": "selbst auto propia propria zi",
    "cross": "kreuz cruzada croisee incrociata jiaocha",
    "head": "kopf cabeza cabeca tete testa",
    "heads": "koepfe kopfe cabezas cabecas tetes teste tou",
    "layer": "schicht capa camada couche strato ceng",
    "layers": "schichten capas camadas couches strati",
    "block": "bloque bloco bloc blocco kuai",
    "model": "modell modelo modele modello moxing",
    "encoder": "kodierer enkodierer codificador encodeur codificatore bianmaqi",
    "decoder": "dekodierer decodificador decodeur decodificatore jiemaqi",
    "embedding": "einbettung incrustacion plongement incorporazione qianru",
    "positions": "positionen posiciones posicoes posizioni",
    "position": "posicion posicao posizione weizhi",
    "sublayer": "subcapa teilschicht subcamada souscouche",
    "sublayers": "subcapas teilschichten subcamadas",
    "proj": "proy proyeccion projecao proiezione projektion",
    "linears": "lineales lineares lineaires lineari",
    "feed_forward": "densa vorwaerts vorwarts prealimentada qiankui",
    "norm": "normierung norma normalizacion normalizacao normalisierung guiyihua",
    "mask": "maske mascara masque maschera yanma",
    "width": "breite ancho largura largeur larghezza wei weidu",
    "depth": "tiefe profundidad profundidade profondeur profondita",
    "length": "laenge lange longitud comprimento longueur lunghezza chang changdu",
    "max": "maxima maximo maximale massima zuida",
    "size": "groesse grosse tamano tamanho taille dimensione daxiao",
    "hidden": "verdeckt versteckt oculta oculto escondida cachee nascosta yincang",
    "context": "kontext contexto contexte contesto",
    "vocab": "vokabular wortschatz vocabulario vocabulaire vocabolario cibiao zidian",
    "dropout": "abwurf abandono abandon diuqi",
    "src": "quelle origen origem fuente fonte sorgente yuan",
    "tgt": "ziel destino alvo cible bersaglio destinazione mubiao",
    "input": "eingabe entrada entree ingresso shuru",
    "output": "ausgabe salida saida sortie uscita shuchu",
    "memory": "gedaechtnis memoria memoire jiyi",
    "query": "abfrage anfrage consulta requete interrogazione chaxun",
    "key": "schluessel schlussel clave chave cle chiave jian",
    "value": "wert valor valeur valore zhi",
    "batch": "stapel lote lotto piliang",
    "generator": "generador gerador generateur generatore shengchengqi",
    "tokens": "kennungen fichas jetons",
    "label": "etiqueta etiquetas etikett etiketten etichetta etichette biaoqian",
    "smoothing": "suave suaves suavizado suavizacion glaettung glattung lissage pinghua",
    "data": "daten datos dados donnees dati shuju",
    "loader": "lader cargador carregador chargeur caricatore",
    "train": "trainiere entrenar treinar entrainer addestra xunlian",
    "target": "objetivo obiettivo zielwert",
    "padding": "relleno fuellung remplissage riempimento tianchong",
    "loss": "verlust perdida perda perte perdita sunshi",
}
_ENGLISH = {theirs: english for english, several in _WORDS.items() for theirs in several.split()}


@cache
def in_english(name: str) -> tuple[str, ...]:
    """Return a name with its words in English, in their order and turned round; nothing where no word is known.

    What a noun belongs to stands before it in English and behind it elsewhere: `mascara_origen`, `src_mask`.
    """
    words = [word for word in re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", _plain(name)).lower().split("_") if word]
    english = [_ENGLISH.get(word, word) for word in words]
    return ("_".join(english), "_".join(english[::-1])) if english != words else ()


def _plain(name: str) -> str:
    """Return a name without accents: identifiers may have any letters."""
    return "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
