"""Questions over documents without labels: material chooses passages, writing asks a model, checks keep the good ones."""
