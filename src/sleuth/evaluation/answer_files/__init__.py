"""Files of predictions by any system: read, compared with the questions, and scored by the official rules."""
