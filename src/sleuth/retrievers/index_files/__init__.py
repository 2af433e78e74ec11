"""An index as files: passages and where each lies, what there is, and how a new generation takes the old one's place."""
