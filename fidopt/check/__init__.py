"""Whether a method's fields say what the contract means: pairs whose motion is known, read in every wrong way too."""
