"""Files of predictions by any system: read, held against the questions, and scored by the official rules."""
