"""Known mistakes of conversions, one TOML file each; mistake.py reads them and says what they make of right weights."""
