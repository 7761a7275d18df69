"""How the course draws: one style, timelines, and results beside their records. matplotlib loads on use."""
