"""The vision transformer: patches, class token, layers, classification head. Dosovitskiy et al. 2021."""
