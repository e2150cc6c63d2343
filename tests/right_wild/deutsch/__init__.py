"""Ein kleines Sprachmodell, deutsch benannt."""
from .aufmerksamkeit import MehrkopfAufmerksamkeit, aufmerksamkeit
from .modell import Positionskodierung, Schicht, Sprachmodell, Vorwaertsnetz
