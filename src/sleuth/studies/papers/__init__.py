"""The papers, one file each: tables and figures as values."""
